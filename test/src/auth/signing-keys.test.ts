import { setTimeout as sleep } from 'node:timers/promises';
import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { accessTokenJob, createTokenReader } from '../../../src/auth/access-token.js';
import { revoke, rotate } from '../../../src/auth/key-rotation.js';
import { KEY_TIMES } from '../../../src/auth/key-times.js';
import { openSigningKeys, type SigningKeys } from '../../../src/auth/signing-keys.js';
import { ApiError } from '../../../src/errors.js';
import { listKeys } from '../../../src/store/signing-keys.js';
import { signJws } from '../../../workers/jws.js';
import { addTotp } from '../../support/accounts.js';
import { startApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { age, keyNode, kidsIn, type KeyNode } from '../../support/keys.js';
import { atMost, until } from '../../support/patience.js';
import { startProxy, type Proxy } from '../../support/proxy.js';
import { freshDatabase, type Teardown } from '../../support/stores.js';

const STRANGER = 'x'.repeat(43);

/** Keys that are read only when somebody asks. */
const UNPOLLED = { ...KEY_TIMES, pollMs: 3_600_000, rereadMs: 1 };

async function open(t: Teardown, node: KeyNode, times = UNPOLLED): Promise<SigningKeys> {
  const keys = await openSigningKeys(node, times);
  t.teardown(() => keys.close());
  return keys;
}

/** Lets the key that comes next take over, however short it has been shown. */
async function turn(node: KeyNode): Promise<string> {
  await age(node, KEY_TIMES.leadMs / 1000);
  await rotate(node);
  return (await kidsIn(node, 'active'))[0]!;
}

t.test('a node learns by itself that another key signs', async (t) => {
  const node = await keyNode(t);
  const keys = await open(t, node, { ...KEY_TIMES, pollMs: 20, rereadMs: 1 });
  const kid = await turn(node);
  await until(async () => keys.current().kid === kid);
  t.match(decodeProtectedHeader(signJws({ ...keys.current(), claims: {} })), { kid });
});

t.test('a node that is late knows every key that signs elsewhere, since it was shown before', async (t) => {
  const node = await keyNode(t);
  const late = await open(t, node);
  const [former] = await kidsIn(node, 'active');
  const kid = await turn(node);
  t.equal(late.current().kid, former, 'it signs with the former key');
  t.ok(late.knows(kid), 'and reads tokens of the new one without a look');
  t.match(late.published().body, kid);
});

t.test('a key that nobody could have seen is looked up when its first token comes', async (t) => {
  const node = await keyNode(t);
  const late = await open(t, node);
  const { signing } = await revoke(node, 'all');
  t.notOk(late.knows(signing));
  t.ok(await late.find(signing));
  t.equal(late.current().kid, signing, 'and what was revoked signs no more');
});

t.test('many that ask for unknown keys share a look; what cannot be a key and what is retired costs none', async (t) => {
  const node = await keyNode(t);
  let looks = 0;
  const mysql: KeyNode['mysql'] = { ...node.mysql, rows: (...statement) => ((looks += 1), node.mysql.rows(...statement)) };
  const keys = await open(t, { ...node, mysql }, { ...UNPOLLED, rereadMs: 250 });
  const { revoked } = await revoke(node);
  await keys.reread();
  looks = 0;
  for (const kid of ['', 'x', "' OR 1 -- ", '__proto__', 'x'.repeat(44), revoked[0]!]) t.equal(await keys.find(kid), null);
  t.equal(looks, 0);
  const started = performance.now();
  t.same(await Promise.all(Array.from({ length: 100 }, (_, i) => keys.find(`${i}`.padEnd(43, 'x')))), Array.from({ length: 100 }, () => null));
  t.equal(looks, 1);
  for (let i = 0; i < 4; i += 1) await keys.find(STRANGER);
  t.equal(looks, 5);
  t.ok(performance.now() - started > 950, 'and a quarter of a second lies between two looks');
});

t.test('a remembered token is refused as soon as its key is known to be revoked', async (t) => {
  const node = await keyNode(t);
  const keys = await open(t, node);
  const needs = { config: node.config, clock: { now: () => Date.now(), stop: () => undefined }, signingKeys: keys };
  const read = createTokenReader(needs);
  const token = signJws(accessTokenJob(needs, { userId: 'u', sessionId: 's', roles: [], amr: ['pwd'], authTime: new Date(), expiresIn: 900 }));
  t.match(await read(token), { sub: 'u' });
  t.match(await read(token), { sub: 'u' });
  await revoke(node);
  await keys.reread();
  t.equal(await read(token), null);
});

async function proxied(t: Teardown): Promise<{ node: KeyNode; proxy: Proxy }> {
  const url = await freshDatabase(t);
  const proxy = await startProxy(t, url);
  return { proxy, node: await keyNode(t, { MYSQL_URL: proxy.via(url) }) };
}

const codeOf = (work: () => unknown): string => {
  try {
    work();
    return 'none';
  } catch (error) {
    return (error as ApiError).code;
  }
};

t.test('a node that cannot read the keys stops signing after a while, before its key can be retired, and goes on afterwards', async (t) => {
  const { node, proxy } = await proxied(t);
  const keys = await open(t, node, { ...KEY_TIMES, pollMs: 20, rereadMs: 1, trustMs: 300 });
  await proxy.become('refuse');
  const { kid } = keys.current();
  t.equal(codeOf(() => keys.current()), 'none', 'not at once: others may be quicker to come back');
  await until(async () => codeOf(() => keys.current()) === 'UNAVAILABLE');
  t.ok(await keys.find(kid), 'it still reads tokens');
  t.equal(await keys.find(STRANGER).catch((error: unknown) => (error as ApiError).code), 'UNAVAILABLE', 'an unknown key may be a good one: not 401');
  await proxy.become('pass');
  await until(async () => codeOf(() => keys.current()) === 'none');
});

t.test('while MySQL hangs nobody who asks for an unknown key waits for more than one statement', async (t) => {
  const { node, proxy } = await proxied(t);
  const keys = await open(t, node, { ...KEY_TIMES, pollMs: 20, rereadMs: 1 });
  await proxy.become('hang');
  await sleep(100);
  const started = performance.now();
  t.equal(await keys.find(STRANGER).catch((error: unknown) => (error as ApiError).code), 'UNAVAILABLE');
  t.ok(performance.now() - started < atMost(1000));
});

t.test('a node marks the keys for the tokens that it signs before it signs one', async (t) => {
  const node = await keyNode(t, { ACCESS_TTL_S: '600' });
  await open(t, node);
  t.same((await listKeys(node.mysql)).map(({ tokenLifeS }) => tokenLifeS), [600, 600]);
  const patient = await open(t, await keyNode(t, { ACCESS_TTL_S: '3600' }, node));
  t.same((await listKeys(node.mysql)).map(({ tokenLifeS }) => tokenLifeS), [3600, 3600]);
  await turn(node);
  await patient.reread();
  t.same((await listKeys(node.mysql)).map(({ tokenLifeS }) => tokenLifeS), [3600, 3600, 3600], 'those that come later too');
});

t.test('rows that are deleted by hand are keys that are revoked, and others take their place', async (t) => {
  const node = await keyNode(t);
  const keys = await open(t, node);
  const [active, next] = [(await kidsIn(node, 'active'))[0]!, (await kidsIn(node, 'next'))[0]!];
  await node.mysql.run('DELETE FROM signing_keys WHERE kid = ?', [active]);
  await keys.reread();
  t.equal(keys.current().kid, next);
  t.equal(await keys.find(active), null);
  await node.mysql.run('DELETE FROM signing_keys');
  await keys.reread();
  t.notOk([active, next].includes(keys.current().kid));
});

t.test('a key that signs and cannot be opened keeps a node from starting, and another from using it', async (t) => {
  const node = await keyNode(t);
  const keys = await open(t, node);
  const { kid } = keys.current();
  await node.mysql.run("UPDATE signing_keys SET private_key = REVERSE(private_key) WHERE state = 'next'");
  await node.mysql.run("UPDATE signing_keys SET state = 'retiring', slot = NULL WHERE state = 'active'");
  await t.rejects(keys.reread(), /SECRET_KEY is not the one/);
  t.equal(keys.current().kid, kid, 'it goes by what it read before, for a while');
  await t.rejects(openSigningKeys(node), /SECRET_KEY is not the one/);
});

t.test('while a node cannot sign, no refresh token and no second factor is spent', async (t) => {
  const { app, client, account } = await startApp(t);
  const { email, password, id } = await account();
  const { refreshToken } = (await client().login(email, password)).body;
  const code = (await addTotp(app.needs, id))();
  const { mfaToken } = (await client().login(email, password)).body;
  const verify = (): Promise<Answer> => client().request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method: 'totp', code } });

  const keys = app.needs.signingKeys;
  const current = keys.current.bind(keys);
  keys.current = () => {
    throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
  };
  for (const ask of [() => client().refresh(refreshToken), verify]) t.match(await ask(), { status: 503, body: { code: 'UNAVAILABLE' } });
  keys.current = current;
  for (const ask of [() => client().refresh(refreshToken), verify]) t.equal((await ask()).status, 200);
});
