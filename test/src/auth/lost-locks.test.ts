import t from 'tap';
import { identityHash, identityOf } from '../../../src/auth/identity.js';
import { KEYS } from '../../../src/store/redis.js';
import { codeOf, lockOut, pause, strangers, WRONG } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { everyKey, flushEvery } from '../../support/keyspace.js';

// Locks of 0.72, 1.44 and 2.16 s.
const { app, client, account } = await startApp(t, { LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '0.012,0.024,0.036' });
const { mysql, redis, keyring } = app.needs;
const stranger = strangers(client);

/** What is left of the lock that Redis has, in ms. */
const leftOf = async (email: string, source: string | null = null): Promise<number> => Number(await redis.hget(KEYS.gate(identityOf(keyring, email), source), 'lockedUntil')) - Date.now();
const strangerRow = async (email: string): Promise<{ step: number } | undefined> => (await mysql.rows<{ step: number }>('SELECT lock_step AS step FROM stranger_locks WHERE identity = ?', [identityHash(keyring, email)]))[0];

t.test('a flushed Redis tells no known address from an unknown one: locks stand, and go on by their steps', async (t) => {
  const known = (await account()).email;
  const unknown = 'nobody@lost.example';
  const both = [known, unknown];
  await Promise.all(both.map((email) => lockOut(stranger(), email)));
  await flushEvery(redis);
  const refusals = await Promise.all(both.map((email) => stranger().login(email, WRONG)));
  for (const answer of refusals) t.match(answer, { status: 429, body: { code: 'ACCOUNT_LOCKED', retryAfter: 1 } });
  const standing = refusals.filter((answer) => codeOf(answer) === 'ACCOUNT_LOCKED').length;
  figure(t, 'T32', { did: 'a known and an unknown address locked, Redis emptied', figure: `${standing} of 2 still locked`, ok: standing === 2 });
  await pause(750);
  for (const email of both) {
    t.equal(codeOf(await stranger().login(email, WRONG)), 'INVALID_CREDENTIALS', 'one guess');
    t.equal(codeOf(await stranger().login(email, WRONG)), 'ACCOUNT_LOCKED', 'locks again');
    const left = await leftOf(email);
    t.ok(left > 720 && left <= 1440, `by the second step: ${left} ms`);
  }
  await flushEvery(redis);
  await pause(1480);
  for (const email of both) {
    await stranger().login(email, WRONG);
    const left = await leftOf(email);
    t.ok(left > 1440 && left <= 2160, `then by the third: ${left} ms`);
  }
});

t.test('a familiar source keeps its steps through a flush as well', async (t) => {
  const { email, password } = await account();
  const owner = stranger();
  await owner.login(email, password);
  await lockOut(owner, email);
  await flushEvery(redis);
  t.equal(codeOf(await owner.login(email, password)), 'ACCOUNT_LOCKED');
  await pause(750);
  await owner.login(email, WRONG);
  const [key] = (await everyKey(redis, `idp:{${identityOf(keyring, email)}}:gate:*`)).filter((name) => !name.endsWith(':all'));
  const left = Number(await redis.hget(key!, 'lockedUntil')) - Date.now();
  t.ok(left > 720 && left <= 1440, `${left} ms`);
});

t.test('a success makes MySQL forget the steps: after a flush the next lock is the first again', async (t) => {
  const { id, email, password } = await account();
  await lockOut(stranger(), email);
  await pause(750);
  t.equal(codeOf(await stranger().login(email, password)), 'OK');
  t.same(await mysql.rows('SELECT lock_step AS step FROM users WHERE id = ?', [id]), [{ step: 0 }]);
  await flushEvery(redis);
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await stranger().login(email, WRONG)), 'INVALID_CREDENTIALS');
  t.equal(codeOf(await stranger().login(email, password)), 'OK', 'four failures lock nobody');
});

t.test('a success from a familiar source leaves what is remembered of a lock that stands', async (t) => {
  const { id, email, password } = await account();
  const owner = stranger();
  await owner.login(email, password);
  await lockOut(stranger(), email);
  t.equal(codeOf(await owner.login(email, password)), 'OK');
  t.same(await mysql.rows('SELECT lock_step AS step FROM users WHERE id = ?', [id]), [{ step: 1 }]);
});

t.test('lifting a lock by hand forgets its steps too, whatever Redis lost', async (t) => {
  const { id, email, password } = await account();
  await lockOut(stranger(), email);
  await mysql.run('UPDATE users SET locked_until = NULL WHERE id = ?', [id]);
  await flushEvery(redis);
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await stranger().login(email, WRONG)), 'INVALID_CREDENTIALS');
  t.equal(codeOf(await stranger().login(email, password)), 'OK');
});

t.test('what is over for a day counts no longer', async (t) => {
  const known = await account();
  const unknown = 'nobody@day.example';
  for (const email of [known.email, unknown]) await lockOut(stranger(), email);
  await mysql.run('UPDATE users SET locked_until = UTC_TIMESTAMP(3) - INTERVAL 25 HOUR, gate_locked_until = locked_until WHERE id = ?', [known.id]);
  await mysql.run('UPDATE stranger_locks SET locked_until = UTC_TIMESTAMP(3) - INTERVAL 25 HOUR WHERE identity = ?', [identityHash(keyring, unknown)]);
  await flushEvery(redis);
  for (const email of [known.email, unknown]) for (let i = 0; i < 5; i += 1) t.equal(codeOf(await stranger().login(email, WRONG)), 'INVALID_CREDENTIALS');
});

t.test('only addresses without an account have a row of their own, and rows that lapsed go as others come', async (t) => {
  const { email } = await account();
  await lockOut(stranger(), email);
  t.equal(await strangerRow(email), undefined);
  await mysql.run('UPDATE stranger_locks SET locked_until = UTC_TIMESTAMP(3) - INTERVAL 25 HOUR');
  await lockOut(stranger(), 'another@day.example');
  t.same(await strangerRow('another@day.example'), { step: 1 });
  t.same(await mysql.rows('SELECT COUNT(*) AS n FROM stranger_locks WHERE locked_until < UTC_TIMESTAMP(3)'), [{ n: 0 }]);
});
