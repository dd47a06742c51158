// Mostly waits.

import { Redis } from 'ioredis';
import t from 'tap';
import { addRecoveryCodes, addTotp } from '../support/accounts.js';
import { WRONG } from '../support/attempts.js';
import type { Issued } from '../support/client.js';
import { figure } from '../support/figures.js';
import { openInbox } from '../support/inbox.js';
import { startNodes } from '../support/nodes.js';
import { signUpAt } from '../support/sign-up.js';

const inbox = openInbox(t);
const { nodes, account, needs, env } = await startNodes(t, 1, { ...inbox.settings, LOG_LEVEL: 'trace', LOGIN_DELAYS_S: '0', LIMIT_LOGIN_IP: '10000/300', LIMIT_REFRESH_SESSION: '100/300', LIMIT_REFRESH_IP: '10000/300' });
const node = nodes[0]!;
const USERS = 60;
const ROTATIONS = 4;

/** Everything secret that went over the wire, by what it is. */
const secrets = new Map<string, string>();
const addresses: string[] = [];
const ids: string[] = [];

function keep(what: string, issued: Issued): void {
  secrets.set(issued.accessToken, `access token, ${what}`);
  secrets.set(issued.accessToken.split('.')[2]!, `signature of an access token, ${what}`);
  secrets.set(issued.refreshToken, `refresh token, ${what}`);
  secrets.set(issued.jti, `jti, ${what}`);
  // The random part alone would do as well.
  secrets.set(Buffer.from(issued.refreshToken, 'base64url').subarray(20, 52).toString('latin1'), `refresh secret, ${what}`);
}

t.test('tokens, passwords and codes are issued and used', async (t) => {
  for (let i = 0; i < USERS; i += 1) {
    const { id, email, password } = await account({ password: `secret password ${i} \u{1F511}` });
    addresses.push(email);
    ids.push(id);
    secrets.set(password, 'password');
    const client = node.client();
    if (i % 10 === 0) {
      const totp = await addTotp(needs, id);
      await addRecoveryCodes(needs, id, [`recovery-${i}`]);
      secrets.set(`recovery-${i}`, 'recovery code').set(`recovery${i}`, 'recovery code');
      const { mfaToken } = (await client.login(email, password)).body as { mfaToken: string };
      secrets.set(mfaToken, 'MFA token');
      const verify = (method: string, code: string) => client.request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method, code } });
      await verify('recovery_code', 'wrong-code-of-mine');
      secrets.set('wrong-code-of-mine', 'wrong recovery code');
      keep('MFA', (await verify('totp', totp())).body as unknown as Issued);
      continue;
    }
    await client.login(email, `${WRONG} ${i}`);
    secrets.set(`${WRONG} ${i}`, 'wrong password');
    await client.login(email, password, 'cookie');
    for (const [name, value] of client.jar) secrets.set(value, `cookie ${name}`);
    let issued = (await client.login(email, password)).body as unknown as Issued;
    for (let j = 0; j < ROTATIONS; j += 1) {
      keep('login', issued);
      issued = (await client.refresh(issued.refreshToken, { jti: issued.jti })).body as unknown as Issued;
    }
    keep('newest', issued);
    await client.refresh(`${issued.refreshToken.slice(0, -4)}abcd`);
    await client.profile(`${issued.accessToken}x`);
    await client.request('POST', '/api/auth/login', { raw: `{"email":"${email}","password":"${password}"` });
  }
  t.ok(secrets.size > 1000, `${secrets.size} secrets`);
});

t.test('accounts are opened and recovered', async (t) => {
  const { register, verify, reset, token, resetToken } = signUpAt(node, inbox);
  for (let i = 0; i < 5; i += 1) {
    const email = `newcomer${i}@example.com`;
    const passwords = [0, 1, 2].map((n) => `secret password ${n} of newcomer ${i} \u{1F511}`);
    t.equal((await register(email, passwords[0], { givenName: 'Ann' })).status, 202);
    const verification = await token(email, 'verify');
    t.equal((await verify(verification)).status, 204);
    const resetting = await resetToken(email);
    t.equal((await reset(resetting, passwords[1])).status, 204);
    const { accessToken } = (await node.client().login(email, passwords[1]!)).body as unknown as Issued;
    const change = { headers: { authorization: `Bearer ${accessToken}` }, body: { currentPassword: passwords[1], newPassword: passwords[2] } };
    t.equal((await node.client().request('POST', '/api/auth/password/change', change)).status, 204);
    for (const password of passwords) secrets.set(password, 'password of a newcomer');
    secrets.set(verification, 'verification token').set(resetting, 'reset token');
    addresses.push(email);
    ids.push((await needs.mysql.rows<{ id: string }>('SELECT id FROM users WHERE email = ?', [email]))[0]!.id);
  }
});

/** A value as text in every spelling it may be looked for in. */
const spellings = (value: unknown): string[] => (Buffer.isBuffer(value) ? [value.toString('latin1'), value.toString('base64url'), value.toString('utf8')] : [value instanceof Date ? '' : String(value)]);

function found(haystack: string, needles: Iterable<[string, string]>): string[] {
  return [...needles].filter(([needle]) => haystack.includes(needle)).map(([, what]) => what);
}

/** What was found in each store, for the figure of all. */
const seen = new Map<string, number>();

t.test('none of them stands in any column of MySQL', async (t) => {
  const tables = await needs.mysql.rows<{ name: string }>('SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()');
  t.ok(tables.length > 10);
  let dump = '';
  for (const { name } of tables) for (const row of await needs.mysql.rows<Record<string, unknown>>(`SELECT * FROM ${name}`)) dump += Object.values(row).flatMap(spellings).join('\n');
  t.ok(addresses.every((address) => dump.includes(address)), 'the dump is whole');
  t.same(found(dump, secrets), []);
  seen.set('MySQL', found(dump, secrets).length);
});

t.test('neither they nor an address nor a user id stand in Redis', async (t) => {
  const redis = new Redis(env['REDIS_URL']!);
  let dump = '';
  // A short-lived key may be gone by the time it is read.
  for (const key of await redis.keys('*')) dump += `${key}\n${((await redis.dumpBuffer(key)) as Buffer | null)?.toString('latin1') ?? ''}\n${(await redis.type(key)) === 'hash' ? JSON.stringify(await redis.hgetall(key)) : ''}\n`;
  redis.disconnect();
  t.ok(dump.length > 0);
  t.same(found(dump, secrets), []);
  seen.set('Redis', found(dump, secrets).length);
  t.same(found(dump, [...addresses, ...ids].map((one) => [one, one])), []);
});

t.test('nor in the log, not even at its finest level', async (t) => {
  await node.stop();
  const log = node.output();
  t.ok(log.split('\n').length > USERS, 'there is a log');
  t.same(found(log, secrets), []);
  t.same(found(log, [...addresses, ...ids].map((one) => [one, one])), []);
  seen.set('log', found(log, secrets).length);

  const figures = [...seen].map(([where, n]) => `${where} ${n}`).join(', ');
  const tokens = [...secrets.values()].filter((what) => /token|jti|cookie/.test(what)).length;
  figure(t, 'T23', { did: `${tokens} tokens issued, then every column and every key searched`, figure: figures, ok: [...seen.values()].every((n) => n === 0) });
  figure(t, 'T59', { did: `${secrets.size} passwords, codes and tokens used, then stores and the finest log searched`, figure: figures, ok: seen.size === 3 && [...seen.values()].every((n) => n === 0) });
});
