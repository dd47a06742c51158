// Mostly waits.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { v4 as uuid } from 'uuid';
import { RETENTION, runRetention } from '../../../src/account/retention.js';
import { buildApp } from '../../../src/app.js';
import { loadConfig } from '../../../src/config/load.js';
import { subjectOf } from '../../../src/keyring.js';
import { count, seedDue, taskNeeds, THOUSAND, until } from '../../support/due.js';
import { figure } from '../../support/figures.js';
import { ownRedis } from '../../support/stores.js';

const RUNNER = fileURLToPath(new URL('../../support/runner.js', import.meta.url));
const fast = { share: 1 };

t.test('nothing is purged before its time, and nothing that was not deleted', async (t) => {
  const needs = await taskNeeds(t);
  const add = async (ago: string | null, status = 'active'): Promise<string> => {
    const id = uuid();
    await needs.mysql.run(`INSERT INTO users (id, email, status, deleted_at) VALUES (?, ?, ?, ${ago === null ? 'NULL' : `UTC_TIMESTAMP(3) - ${ago}`})`, [id, `${id}@example.com`, status]);
    return id;
  };
  const kept = [await add(null), await add(null, 'disabled'), await add('INTERVAL 1 DAY'), await add('INTERVAL (30 * 86400 - 60) SECOND')];
  const due = [await add('INTERVAL (30 * 86400 + 1) SECOND'), await add('INTERVAL 400 DAY', 'disabled')];
  t.same(await runRetention(needs, { dryRun: true }), { due: 2, purged: 0 }, 'a dry run counts');
  t.equal(await count(needs.mysql, 'users'), 6, 'and changes nothing');
  const told: [number, number][] = [];
  t.same(await runRetention(needs, { ...fast, progress: (done, total) => told.push([done, total]) }), { due: 2, purged: 2 });
  t.same(told, [[0, 2], [1, 2], [2, 2]]);
  const left = await needs.mysql.rows<{ id: string }>('SELECT id FROM users');
  t.same(left.map((row) => row.id).sort(), kept.sort());
  const early = kept.filter((id) => !left.some((row) => row.id === id)).length;
  figure(t, 'T38', { did: '4 accounts that are not due (one by a minute), 2 that are (one by a second)', figure: `${early} purged before their time, ${6 - left.length - early} purged`, ok: early === 0 && left.length === 4 });
  const events = await needs.mysql.rows<{ message: string }>('SELECT message FROM event_outbox ORDER BY seq');
  const messages = events.map((row) => JSON.parse(row.message) as Record<string, unknown>);
  t.same(messages.map((message) => message['userId']), [due[1], due[0]], 'the longest deleted first');
  t.match(messages[0], { type: 'identity.user.permanently_deleted', userId: due[1], email: `${due[1]!}@example.com`, daysInDeletedState: 400 });
  t.equal(messages[1]!['daysInDeletedState'], 30);
  t.ok(Math.abs(Date.parse(messages[1]!['originalDeletionAt'] as string) - (Date.now() - 30 * 86_400_000)) < 60_000);
  const audit = await needs.mysql.rows('SELECT user_id, subject, action, status, ip_address FROM audit_log ORDER BY id');
  t.same(audit, [due[1], due[0]].map((id) => ({ user_id: null, subject: subjectOf(needs.keyring, id!), action: 'account.purged', status: 'success', ip_address: null })));
});

t.test('what lapsed is erased whoever it belongs to, and nothing that is still of use', async (t) => {
  const needs = await taskNeeds(t);
  const { mysql } = needs;
  const owner = uuid();
  await mysql.run('INSERT INTO users (id, email) VALUES (?, ?)', [owner, 'owner@example.com']);
  const session = (expires: string, revoked: string, deleted: string, n: number): Promise<unknown> =>
    mysql.run(
      `INSERT INTO sessions (id, user_id, secret_hash, amr, device, ip_address, expires_at, absolute_expires_at, revoked_at, deleted_at)
       SELECT UUID(), ?, REPEAT('s', 32), 'pwd', 'phone', '192.0.2.1', UTC_TIMESTAMP(3) + ${expires}, UTC_TIMESTAMP(3), ${revoked}, ${deleted} FROM ${THOUSAND} LIMIT ${n}`,
      [owner],
    );
  const ago = (days: number): string => `UTC_TIMESTAMP(3) - INTERVAL ${days} DAY`;
  await session('INTERVAL 5 DAY', 'NULL', 'NULL', 1);
  await session('INTERVAL -29 DAY', 'NULL', 'NULL', 2);
  await session('INTERVAL 5 DAY', ago(29), 'NULL', 4);
  await session('INTERVAL -31 DAY', 'NULL', 'NULL', 700);
  await session('INTERVAL 5 DAY', ago(31), 'NULL', 600);
  await session('INTERVAL -60 DAY', 'NULL', ago(29), 8);
  await session('INTERVAL -90 DAY', 'NULL', ago(31), 550);
  const ends = ['UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE', 'UTC_TIMESTAMP(3) - INTERVAL 1 SECOND'];
  await mysql.run(`INSERT INTO mfa_tokens (token_hash, user_id, expires_at) VALUES (REPEAT('a', 32), ?, ${ends[0]!}), (REPEAT('b', 32), ?, ${ends[1]!})`, [owner, owner]);
  await mysql.run(
    `INSERT INTO account_tokens (token_hash, user_id, purpose, address_hash, expires_at)
     VALUES (REPEAT('a', 32), ?, 'verify_email', REPEAT('a', 32), ${ends[0]!}), (REPEAT('b', 32), ?, 'reset_password', REPEAT('a', 32), ${ends[1]!})`,
    [owner, owner],
  );
  await mysql.run(`INSERT INTO login_sources (user_id, network, device, last_seen_at) VALUES (?, REPEAT('a', 16), REPEAT('a', 16), ${ago(179)}), (?, REPEAT('b', 16), REPEAT('b', 16), ${ago(181)})`, [owner, owner]);
  await mysql.run(`INSERT INTO login_places (user_id, country, last_seen_at) VALUES (?, 'DE', ${ago(179)}), (?, 'FR', ${ago(181)})`, [owner, owner]);
  await mysql.run(`INSERT INTO stranger_locks (identity, lock_step, locked_until) VALUES (REPEAT('a', 32), 1, UTC_TIMESTAMP(3) - INTERVAL 23 HOUR), (REPEAT('b', 32), 1, UTC_TIMESTAMP(3) - INTERVAL 25 HOUR)`);
  const enrolment = (method: string, verified: string, created: string): Promise<unknown> => mysql.run(`INSERT INTO mfa_factors (id, user_id, method, verified_at, created_at) VALUES (UUID(), ?, ?, ${verified}, ${created})`, [uuid(), method]);
  await enrolment('totp', 'NULL', 'UTC_TIMESTAMP(3) - INTERVAL 23 HOUR');
  await enrolment('totp', ago(2), ago(2));
  await enrolment('totp', 'NULL', ago(2));
  await runRetention(needs, fast);
  const lives = "user_id IS NOT NULL AND device = 'phone' AND ip_address IS NOT NULL";
  t.equal(await count(mysql, 'sessions', `deleted_at IS NULL AND ${lives}`), 1 + 2 + 4, 'sessions that ended lately are as before');
  t.equal(await count(mysql, 'sessions', `deleted_at > UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE AND user_id IS NULL AND device IS NULL AND ip_address IS NULL`), 700 + 600, 'others became tombstones');
  t.equal(await count(mysql, 'sessions'), 7 + 1300 + 8, 'old tombstones went');
  for (const table of ['mfa_tokens', 'account_tokens', 'login_sources', 'login_places', 'stranger_locks']) t.equal(await count(mysql, table), 1, table);
  t.equal(await count(mysql, 'mfa_factors'), 2, 'an enrolment that was not confirmed in a day went');
});

t.test('an audit entry that was written after the purge of its account loses its name in the next run', async (t) => {
  const needs = await taskNeeds(t);
  const { mysql } = needs;
  const [owner, gone] = [uuid(), uuid()];
  await mysql.run('INSERT INTO users (id, email) VALUES (?, ?)', [owner, 'owner@example.com']);
  const write = (id: string | null, n: number): Promise<unknown> =>
    mysql.run(`INSERT INTO audit_log (user_id, subject, action, status, ip_address) SELECT ?, 'x', 'login', 'failure', '192.0.2.1' FROM ${THOUSAND} LIMIT ${n}`, [id]);
  for (let round = 1; round <= 3; round += 1) {
    await write(gone, 600);
    await write(owner, 3);
    await write(null, 2);
    await runRetention(needs, fast);
    t.equal(await count(mysql, 'audit_log', `user_id = '${gone}'`), 0);
    t.equal(await count(mysql, 'audit_log', `user_id = '${owner}' AND ip_address IS NOT NULL`), 3 * round);
    t.equal(await count(mysql, 'audit_log', 'user_id IS NULL AND ip_address IS NOT NULL'), 2 * round, 'entries about nobody known stay');
  }
});

t.test('three runners at once, two of them killed on the way: each of 1,000 accounts is purged once', async (t) => {
  const needs = await taskNeeds(t);
  const { mysql, env } = needs;
  await seedDue(mysql, 1000);
  const ids = (await mysql.rows<{ id: string; email: string }>('SELECT id, email FROM users')).flatMap(({ id, email }) => [id, email]);
  let killed = 0;
  let output = '';
  const run = (): Promise<void> => {
    const child = fork(RUNNER, [], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('message', (done: number) => {
      if (killed >= 2 || done < 250) return;
      killed += 1;
      child.kill('SIGKILL');
    });
    return new Promise((resolve) => child.once('exit', () => resolve()));
  };
  await Promise.all([run(), run(), run()]);
  t.equal(killed, 2);
  t.equal(await count(mysql, 'users'), 0);
  t.same(await mysql.rows("SELECT COUNT(DISTINCT id) AS ids, COUNT(DISTINCT user_id) AS users, COUNT(*) AS n FROM event_outbox WHERE type = 'identity.user.permanently_deleted'"), [{ ids: 1000, users: 1000, n: 1000 }]);
  t.same(await mysql.rows("SELECT COUNT(DISTINCT subject) AS subjects, COUNT(*) AS n FROM audit_log WHERE action = 'account.purged'"), [{ subjects: 1000, n: 1000 }]);
  for (const table of ['profiles', 'user_roles', 'user_tenants']) t.equal(await count(mysql, table), 0, `no orphan in ${table}`);
  t.match(output, '"msg":"retention is done"');
  t.same(ids.filter((word) => output.includes(word)), [], 'no log line names an account');
});

t.test('a run that is told to stop ends after the account at hand, and the next one goes on', async (t) => {
  const needs = await taskNeeds(t);
  await seedDue(needs.mysql, 30);
  const stop = new AbortController();
  const progress = (done: number): void => (done === 7 ? stop.abort() : undefined);
  t.same(await runRetention(needs, { ...fast, signal: stop.signal, progress }), { due: 30, purged: 7 });
  t.same(await runRetention(needs, fast), { due: 23, purged: 23 });
});

t.test('an account whose row is held is left alone and taken when it is free', async (t) => {
  const needs = await taskNeeds(t);
  const { mysql } = needs;
  await seedDue(mysql, 3);
  const [held] = await mysql.rows<{ id: string }>('SELECT id FROM users LIMIT 1');
  let running: Promise<unknown> = Promise.resolve();
  await mysql.transaction(async (tx) => {
    await tx.rows('SELECT id FROM users WHERE id = ? FOR UPDATE', [held!.id]);
    running = runRetention(needs, fast);
    t.ok(await until(async () => (await count(mysql, 'users')) === 1), 'the others do not wait for it');
  });
  t.same(await running, { due: 3, purged: 3 });
});

t.test('the nightly run is off by default; switched on it catches up at start', async (t) => {
  const redis = await ownRedis(t);
  const needs = await taskNeeds(t, { REDIS_URL: redis.url });
  const { mysql } = needs;
  await seedDue(mysql, 1);
  const on = { ENABLE_RETENTION_CRON: '1' };
  /** Starts the service, gives it time to purge, and tells how many accounts are left. */
  const start = async (settings: Record<string, string>): Promise<number> => {
    const app = await buildApp(loadConfig({ ...needs.env, ...settings }), needs.log);
    await until(async () => (await count(mysql, 'schedules', `name = '${RETENTION}' AND holder IS NULL AND done_for > UTC_TIMESTAMP(3) - INTERVAL 1 DAY`)) === 1, settings === on ? 5000 : 700);
    await app.close();
    return count(mysql, 'users');
  };
  const off = await start({});
  figure(t, 'T39', { did: 'an overdue account, the service started without the switch', figure: `${1 - off} purged`, ok: off === 1 });
  t.equal(await start(on), 0, 'with it every night so far was missed');
  await seedDue(mysql, 1);
  t.equal(await start(on), 1, 'a second start on the same day does nothing');
  await mysql.run('UPDATE schedules SET done_for = done_for - INTERVAL 1 DAY');
  const missed = await start(on);
  figure(t, 'T38', { did: 'a start after a night that was missed', figure: `${missed} of 1 due accounts left`, ok: missed === 0 });
});
