import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import { revoke, rotate } from '../../src/auth/key-rotation.js';
import { KEY_TIMES } from '../../src/auth/key-times.js';
import { startApp } from '../support/app.js';
import { age } from '../support/keys.js';
import { fetched } from '../support/witness.js';

const { app, base, client, account } = await startApp(t);
const { id, email, password } = await account();
const tokenOf = async (): Promise<string> => (await client().login(email, password)).body['accessToken'] as string;

// Between the example and the service, to count what it asks for.
let asked: string[] = [];
const between = createServer((req, res) => {
  asked.push(req.url!);
  void fetched(base + req.url!).then(({ response, text }) => res.writeHead(response.status, { 'content-type': 'application/json' }).end(text));
});
await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
t.teardown(() => between.close());
process.env['PORTCULLIS_URL'] = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
const { callerOf } = await import('../../docs/examples/verify-token.js');

t.test('the example tells who calls, and asks for the keys once', async (t) => {
  asked = [];
  t.same(await callerOf(`Bearer ${await tokenOf()}`), { userId: id, roles: [] });
  for (let i = 0; i < 5; i += 1) await callerOf(`bearer ${await tokenOf()}`);
  t.same(asked, ['/.well-known/jwks.json']);
});

t.test('it refuses what is forged, expired, for another or no token at all', async (t) => {
  const token = await tokenOf();
  const [head, body, signature] = token.split('.') as [string, string, string];
  const { privateKey } = await generateKeyPair('ES256');
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string };
  const forged = await new SignJWT({ sid: 's' }).setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt' }).setSubject(id).setIssuer('portcullis').setAudience('portcullis').setExpirationTime('1h').sign(privateKey);
  const changed = Buffer.from(JSON.stringify({ ...(JSON.parse(Buffer.from(body, 'base64url').toString()) as object), roles: ['admin'] })).toString('base64url');
  for (const bad of ['', 'Bearer', 'Bearer x', `Bearer ${forged}`, `Bearer ${head}.${changed}.${signature}`, `Bearer ${head}.${body}.`, `Bearer ${token} ${token}`]) await t.rejects(callerOf(bad), bad.slice(0, 20));
});

t.test('it goes on through a rotation without asking again', async (t) => {
  const before = await tokenOf();
  await age(app.needs, KEY_TIMES.leadMs / 1000);
  t.match(await rotate(app.needs), { kind: 'rotated' });
  await app.needs.signingKeys.reread();
  const after = await tokenOf();
  t.not(after.split('.')[0], before.split('.')[0], 'another key signs');
  asked = [];
  for (const token of [before, after]) t.same(await callerOf(`Bearer ${token}`), { userId: id, roles: [] });
  t.same(asked, []);
});

t.test('a token of a revoked key is refused by the service at once, and by the example until it reads the keys', async (t) => {
  const token = await tokenOf();
  await revoke(app.needs);
  await app.needs.signingKeys.reread();
  t.equal((await client().profile(token)).status, 401);
  await t.resolves(callerOf(`Bearer ${token}`), 'as the README says');
});

t.test('the README shows the example as it stands in docs/examples', (t) => {
  const root = new URL('../../../', import.meta.url);
  const [readme, example] = ['README.md', 'docs/examples/verify-token.ts'].map((path) => readFileSync(new URL(path, root), 'utf8'));
  t.ok(readme!.includes(example!));
  t.end();
});
