// Mostly waits.

import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import t from 'tap';
import { jwks } from '../../../src/auth/jwks.js';
import { revoke, rotate } from '../../../src/auth/key-rotation.js';
import { KEY_TIMES } from '../../../src/auth/key-times.js';
import { startApp } from '../../support/app.js';
import { age } from '../../support/keys.js';
import { converse } from '../../support/raw.js';

const PATH = '/.well-known/jwks.json';
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k', 'oth'];

for (const alg of ['ES256', 'EdDSA', 'RS256']) {
  t.test(`tokens of ${alg} are verified with the published set alone, by others, before and after a rotation`, async (t) => {
    const { app, client, account } = await startApp(t, { JWT_ALG: alg });
    const { email, password } = await account();
    const tokenOf = async (): Promise<string> => (await client().login(email, password)).body['accessToken'] as string;
    const { body } = await client().request('GET', PATH);
    const set = body as unknown as JSONWebKeySet;
    t.equal(set.keys.length, 2, 'the key that signs and the one that comes next');
    for (const key of set.keys) {
      t.match(key, { alg, use: 'sig', kid: /^[\w-]{43}$/ });
      t.same(PRIVATE.filter((member) => member in key), []);
    }
    const verify = (token: string) => jwtVerify(token, createLocalJWKSet(set), { typ: 'at+jwt', issuer: 'portcullis', audience: 'portcullis' });
    const before = await verify(await tokenOf());
    t.equal(before.protectedHeader.kid, set.keys[0]!.kid, 'the one that signs stands first');

    await age(app.needs, KEY_TIMES.leadMs / 1000);
    await rotate(app.needs);
    await app.needs.signingKeys.reread();
    const after = await verify(await tokenOf());
    t.equal(after.protectedHeader.kid, set.keys[1]!.kid, 'a set of before the rotation is enough');
  });
}

const { app, client, account } = await startApp(t);

t.test('the set may be kept for five minutes, and is sent again only when it changed', async (t) => {
  const first = await client().request('GET', PATH);
  t.equal(first.status, 200);
  t.equal(first.headers.get('cache-control'), 'public, max-age=300');
  t.match(first.headers.get('content-type'), /^application\/json/);
  const etag = first.headers.get('etag')!;
  t.match(etag, /^"[\w-]{43}"$/);
  for (const names of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await client().request('GET', PATH, { headers: { 'if-none-match': names } });
    t.equal(again.status, 304, names);
    t.equal(again.text, '');
    t.equal(again.headers.get('etag'), etag);
    t.equal(again.headers.get('cache-control'), 'public, max-age=300');
  }
  t.equal((await client().request('GET', PATH, { headers: { 'if-none-match': '"other"' } })).status, 200);
  await revoke(app.needs);
  await app.needs.signingKeys.reread();
  const changed = await client().request('GET', PATH, { headers: { 'if-none-match': etag } });
  t.equal(changed.status, 200);
  t.not(changed.headers.get('etag'), etag);
});

t.test('a reply without a body has no Content-Length, and the connection goes on', async (t) => {
  const etag = (await client().request('GET', PATH)).headers.get('etag')!;
  const talk = await converse(app.port);
  for (let round = 0; round < 2; round += 1) {
    talk.send(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nIf-None-Match: ${etag}\r\n\r\n`);
    // It has no body, like a reply to HEAD.
    const { status, headers } = await talk.reply('head');
    t.equal(status, 304);
    t.notOk(headers.has('content-length'));
    t.equal(talk.rest(), '');
  }
  talk.socket.destroy();
});

t.test('a revoked key is in no reply, and its tokens are refused by every node that has read the keys', async (t) => {
  const { email, password } = await account();
  const user = client();
  const { accessToken, refreshToken } = (await user.login(email, password)).body as Record<string, string>;
  t.equal((await user.profile(accessToken)).status, 200);
  const { revoked } = await revoke(app.needs);
  await app.needs.signingKeys.reread();
  t.match(await user.profile(accessToken), { status: 401, body: { code: 'UNAUTHENTICATED' } });
  t.notMatch((await user.request('GET', PATH)).text, revoked[0]!);
  const refreshed = await user.refresh(refreshToken);
  t.equal(refreshed.status, 200, 'the session lives');
  t.equal((await user.profile(refreshed.body['accessToken'] as string)).status, 200);
});

t.test('a node that has not read the keys for so long that a copy of its set could be too old shows none', async (t) => {
  const { signingKeys } = app.needs;
  const aged = (ageMs: number) => ({ signingKeys: { ...signingKeys, published: () => ({ ...signingKeys.published(), ageMs }) } });
  const call = { headers: { get: () => undefined, twice: () => false } } as never;
  const statusAt = async (ageMs: number): Promise<number> => (await jwks.handle(aged(ageMs), call)).status;
  t.equal(await statusAt(KEY_TIMES.servedMs), 200);
  await t.rejects(statusAt(KEY_TIMES.servedMs + 1), { code: 'UNAVAILABLE' });
});
