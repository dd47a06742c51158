import t from 'tap';
import { identityOf } from '../../../src/auth/identity.js';
import { KEYS } from '../../../src/store/redis.js';
import { codeOf, lockOut, pause, strangers, WRONG } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { figure } from '../../support/figures.js';
import { flushEvery } from '../../support/keyspace.js';

const { app, client, account } = await startApp(t, { LOGIN_DELAYS_S: '0' });
const { mysql, redis } = app.needs;
const stranger = strangers(client);

const lockedUntil = async (id: string): Promise<Date | null> => (await mysql.rows<{ at: Date | null }>('SELECT locked_until AS at FROM users WHERE id = ?', [id]))[0]!.at;
const setLock = (id: string, sql: string): Promise<unknown> => mysql.run(`UPDATE users SET locked_until = ${sql} WHERE id = ?`, [id]);

t.test('live sessions and refresh go on while the account is locked', async (t) => {
  const { email, password } = await account();
  const owner = stranger();
  const { body } = await owner.login(email, password);
  await lockOut(stranger(), email);
  t.equal((await owner.profile(body['accessToken'] as string)).status, 200);
  const { status } = await owner.refresh(body['refreshToken']);
  figure(t, 'T05', { did: 'locked by a stranger, then refresh by the owner', figure: String(status), ok: status === 200 });
});

t.test('strangers cannot lock the owner out of a familiar source', async (t) => {
  const { email, password } = await account();
  const owner = stranger();
  await owner.login(email, password);
  await lockOut(stranger(), email);
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
  t.equal(codeOf(await owner.login(email, password)), 'OK');
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED', 'and the owner does not let them in again');
  await flushEvery(redis);
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED', 'MySQL knows the lock when Redis has lost it');
  t.equal(codeOf(await owner.login(email, password)), 'OK');
});

t.test('a right login that a lock overtakes is refused, and nothing of it stays', async (t) => {
  const { id, email, password } = await account();
  const owner = stranger();
  await owner.login(email, password);
  const late = stranger();
  const locked = KEYS.gate(identityOf(app.needs.keyring, email), null);
  let refused: Promise<Answer>;
  // The row is held, so that the login is proven but not yet settled when failures of the familiar source lock everybody.
  await mysql.transaction(async (tx) => {
    await tx.rows('SELECT id FROM users WHERE id = ? FOR UPDATE', [id]);
    refused = late.login(email, password);
    void lockOut(owner, email);
    while ((await redis.hget(locked, 'lockedUntil')) === null) await pause(10);
  });
  t.equal(codeOf(await refused!), 'ACCOUNT_LOCKED');
  const [row] = await mysql.rows<{ sessions: unknown; sources: unknown }>('SELECT (SELECT COUNT(*) FROM sessions WHERE user_id = ?) AS sessions, (SELECT COUNT(*) FROM login_sources WHERE user_id = ?) AS sources', [id, id]);
  t.same([Number(row!.sessions), Number(row!.sources)], [1, 1], 'those of the owner');
  t.equal(codeOf(await late.login(email, password)), 'ACCOUNT_LOCKED', 'nor has it become familiar');
});

t.test('another device in a familiar network is a stranger', async (t) => {
  const { email, password } = await account();
  await client({ ip: '203.0.113.1', userAgent: 'Mozilla/5.0 (X11) Firefox/120.0' }).login(email, password);
  await lockOut(stranger(), email);
  t.equal(codeOf(await client({ ip: '203.0.113.1', userAgent: 'curl/8' }).login(email, password)), 'ACCOUNT_LOCKED');
  t.equal(codeOf(await client({ ip: '203.0.113.1', userAgent: 'Mozilla/5.0 (X11) Firefox/133.2' }).login(email, password)), 'OK', 'a newer version of the same is not');
});

t.test('failures from a familiar source lock that source and everybody else', async (t) => {
  const { email, password } = await account();
  const owner = stranger();
  const second = stranger();
  await owner.login(email, password);
  t.equal(codeOf(await second.login(email, password)), 'OK');
  await lockOut(owner, email);
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
  t.equal(codeOf(await second.login(email, password)), 'OK', 'other familiar sources have buckets of their own');
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED', 'which do not clear the lock');
  await flushEvery(redis);
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED', 'MySQL knows the lock when Redis has lost it');
});

t.test('the lock of a familiar source holds although logins from another clear the account between', async (t) => {
  const { email, password } = await account();
  const owner = stranger();
  const second = stranger();
  await owner.login(email, password);
  await second.login(email, password);
  for (let i = 0; i < 4; i += 1) await owner.login(email, WRONG);
  await second.login(email, password);
  await owner.login(email, WRONG);
  for (let i = 0; i < 3; i += 1) t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
  await flushEvery(redis);
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
});

t.test('a lock that ran out in MySQL a moment before it does in Redis was not lifted by hand', async (t) => {
  const { id, email, password } = await account();
  await lockOut(stranger(), email);
  await mysql.run('UPDATE users SET locked_until = UTC_TIMESTAMP(3) - INTERVAL 1 MICROSECOND, gate_locked_until = locked_until WHERE id = ?', [id]);
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
});

t.test('a lock set by hand holds at once, for familiar sources too, and ends when it is lifted by hand', async (t) => {
  const { id, email, password } = await account();
  const owner = stranger();
  await owner.login(email, password);
  await setLock(id, 'UTC_TIMESTAMP(3) + INTERVAL 1 HOUR');
  t.match(await owner.login(email, password), { status: 429, body: { code: 'ACCOUNT_LOCKED', retryAfter: 3600 } });
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
  t.equal(codeOf(await owner.login(email, WRONG)), 'ACCOUNT_LOCKED');
  await setLock(id, 'NULL');
  t.equal(codeOf(await owner.login(email, password)), 'OK');
  t.equal(codeOf(await stranger().login(email, password)), 'OK');
});

for (const [how, sql] of Object.entries({ 'set to NULL': 'NULL', 'set to the past': 'UTC_TIMESTAMP(3) - INTERVAL 1 SECOND' })) {
  t.test(`a lock of the gate is lifted at once when users.locked_until is ${how}`, async (t) => {
    const { id, email, password } = await account();
    const owner = stranger();
    await owner.login(email, password);
    await lockOut(owner, email);
    t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
    t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
    await setLock(id, sql);
    t.equal(codeOf(await stranger().login(email, WRONG)), 'INVALID_CREDENTIALS');
    t.equal(codeOf(await owner.login(email, password)), 'OK');
    t.equal(codeOf(await stranger().login(email, password)), 'OK');
  });
}

t.test('a lock of the gate does not shorten one that was set by hand', async (t) => {
  const { id, email } = await account();
  const from = stranger();
  for (let i = 0; i < 4; i += 1) await from.login(email, WRONG);
  // The fifth guess is in flight while the operator locks: the row is held so that the gate writes after it.
  await mysql.transaction(async (tx) => {
    await tx.run('UPDATE users SET locked_until = UTC_TIMESTAMP(3) + INTERVAL 1 DAY WHERE id = ?', [id]);
    void from.login(email, WRONG);
    await pause(100);
  });
  await pause(50);
  t.ok((await lockedUntil(id))!.getTime() > Date.now() + 3600_000);
});

t.test('locks stored in MySQL hold for familiar sources too when these have no buckets of their own', async (t) => {
  const plain = await startApp(t, { LOCKOUT_FAMILIAR_SOURCES: '0' });
  const { email, password } = await plain.account();
  const owner = plain.client();
  await owner.login(email, password);
  for (let i = 0; i < 5; i += 1) await plain.client({ ip: '198.51.100.9' }).login(email, WRONG);
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
  await flushEvery(plain.app.needs.redis);
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
});
