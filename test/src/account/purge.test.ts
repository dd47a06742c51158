// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { parse, v4 as uuid } from 'uuid';
import { purgeAccount } from '../../../src/account/purge.js';
import { runRetention } from '../../../src/account/retention.js';
import { OTHER_TABLES, USER_TABLES } from '../../../src/account/user-data.js';
import { subjectOf } from '../../../src/keyring.js';
import { markRestored } from '../../../src/store/deletions.js';
import { appendEvent } from '../../../src/store/outbox.js';
import { KEYS } from '../../../src/store/redis.js';
import { startApp } from '../../support/app.js';
import { count, seedDue, taskNeeds, THOUSAND, until } from '../../support/due.js';
import { figure } from '../../support/figures.js';
import { everyKey } from '../../support/keyspace.js';
import { findInMysql, findInRedis, furnish, furnishHidden } from '../../support/personal.js';

const fast = { share: 1 };

t.test('a purge leaves neither address nor id in MySQL, Redis or the events that are out', async (t) => {
  const service = await startApp(t, { LIMIT_EXPORT: '9/3600', LIMIT_DELETE_REQUEST: '9/3600', LIMIT_REFRESH_SESSION: '9/60' });
  const { needs } = service.app;
  const { mysql, redis } = needs;
  const account = await service.account({ email: 'erika.mustermann-7@example.com', phone: '+491701234567' });
  const neighbour = await service.account();
  const client = service.client({ userAgent: 'Erikas Telefon' });
  const tokens = (await client.login(account.email, account.password)).body;
  const bearer = { authorization: `Bearer ${tokens['accessToken'] as string}` };
  await client.login(account.email, 'wrong');
  await client.refresh(tokens['refreshToken']);
  await client.request('GET', '/api/auth/account/export', { headers: bearer });
  await client.request('POST', '/api/auth/account/delete-request', { headers: bearer });
  await service.client().login(neighbour.email, neighbour.password);
  await furnish(needs, account, ['Erikas Vorname']);
  await furnishHidden(needs, account);
  await mysql.transaction(async (tx) => {
    await tx.run("INSERT INTO event_outbox (id, user_id, type, message, published_at) VALUES (?, ?, 'identity.user.deleted', ?, UTC_TIMESTAMP(3))", [uuid(), account.id, JSON.stringify({ email: account.email })]);
    await tx.run('UPDATE users SET deleted_at = UTC_TIMESTAMP(3) - INTERVAL 31 DAY WHERE id = ?', [account.id]);
  });

  const words = [account.id, account.email, 'erika', '+491701234567'];
  const inMysql = [...words, Buffer.from(parse(account.id))];
  const before = await findInMysql(mysql, inMysql);
  const holders = Object.entries(USER_TABLES).map(([table, { owner }]) => `${table}.${owner}`);
  t.same(holders.filter((holder) => !before.includes(holder)), [], 'before it every table of the map held the id');
  t.same(before.filter((place) => place.split('.')[0]! in OTHER_TABLES), []);
  const others = await count(mysql, 'users');

  t.same(await runRetention(needs, fast), { due: 1, purged: 1 });
  needs.events.wake();
  t.ok(await until(async () => (await count(mysql, 'event_outbox', `user_id = '${account.id}'`)) === 0), 'the last event goes with its publication');
  t.same(await findInMysql(mysql, inMysql), []);
  t.ok((await everyKey(redis)).length > 5, 'Redis had been told much');
  t.same(await findInRedis(redis, words), ['idp:events'], 'only the stream for other services names the account');
  t.equal(await count(mysql, 'users'), others - 1);
  t.match(await service.client().login(neighbour.email, neighbour.password), { status: 200 }, 'a neighbour is as before');
  const subject = subjectOf(needs.keyring, account.id);
  const left = await mysql.rows<{ action: string }>('SELECT action FROM audit_log WHERE subject = ? ORDER BY id', [subject]);
  t.same(left.map((entry) => entry.action), ['login', 'login', 'account.exported', 'account.deletion_requested', 'account.purged'], 'the keyed hash still tells the story');
});

t.test('an event that is not out yet survives the purge and goes out before the last one', async (t) => {
  const service = await startApp(t);
  const { mysql, redis } = service.app.needs;
  // The relays are kept from publishing.
  while ((await redis.hsetnx(KEYS.relayLease, 'token', 'the test')) === 0) await sleep(5);
  const account = await service.account({ deletedAt: new Date(Date.now() - 31 * 86_400_000) });
  await mysql.transaction((tx) => appendEvent(tx, 'identity.user.restored', { userId: account.id, email: account.email, originalDeletionAt: new Date().toISOString() }, new Date()));
  await runRetention(service.app.needs, fast);
  t.equal(await count(mysql, 'users'), 0);
  t.equal(await count(mysql, 'event_outbox', 'published_at IS NULL'), 2);
  await redis.del(KEYS.relayLease);
  t.ok(await until(async () => (await redis.xlen(KEYS.events)) === 2));
  const stream = await redis.xrange(KEYS.events, '-', '+');
  t.same(stream.map(([, fields]) => (JSON.parse(fields[1]!) as { type: string }).type), ['identity.user.restored', 'identity.user.permanently_deleted']);
  t.ok(await until(async () => (await count(mysql, 'event_outbox')) === 0));
});

t.test('a session of a purged account is a tombstone for 30 days and then gone', async (t) => {
  const service = await startApp(t);
  const { mysql } = service.app.needs;
  const account = await service.account();
  const client = service.client();
  const tokens = (await client.login(account.email, account.password)).body;
  await mysql.run('UPDATE users SET deleted_at = UTC_TIMESTAMP(3) - INTERVAL 31 DAY WHERE id = ?', [account.id]);
  await runRetention(service.app.needs, fast);
  t.match(await client.profile(tokens['accessToken'] as string), { status: 401 });
  t.match(await client.refresh(tokens['refreshToken']), { status: 401, body: { code: 'REFRESH_SESSION_DELETED' } });
  t.match(await mysql.rows('SELECT user_id, device, ip_address FROM sessions'), [{ user_id: null, device: null, ip_address: null }]);
  await mysql.run('UPDATE sessions SET deleted_at = deleted_at - INTERVAL 31 DAY');
  await runRetention(service.app.needs, fast);
  t.match(await client.refresh(tokens['refreshToken']), { status: 401, body: { code: 'REFRESH_SESSION_NOT_FOUND' } });
});

t.test('an account with thousands of rows is purged whole', async (t) => {
  const needs = await taskNeeds(t);
  const { mysql } = needs;
  await seedDue(mysql, 1);
  await mysql.run(`INSERT INTO audit_log (user_id, subject, action, status) SELECT u.id, 'x', 'login', 'success' FROM users u, ${THOUSAND}`);
  await mysql.run(`INSERT INTO login_sources (user_id, network, device) SELECT u.id, UNHEX(REPLACE(UUID(), '-', '')), UNHEX(REPLACE(UUID(), '-', '')) FROM users u, ${THOUSAND}`);
  t.same(await runRetention(needs, fast), { due: 1, purged: 1 });
  t.same([await count(mysql, 'login_sources'), await count(mysql, 'audit_log', 'user_id IS NOT NULL'), await count(mysql, 'audit_log')], [0, 0, 1001]);
});

t.test('runners that ignore each other’s turn still purge each account once', async (t) => {
  const needs = await taskNeeds(t);
  const { mysql } = needs;
  await seedDue(mysql, 60);
  const ids = (await mysql.rows<{ id: string }>('SELECT id FROM users')).map((row) => row.id);
  const purges = await Promise.all([1, 2, 3].flatMap(() => ids.map((id) => purgeAccount(needs, id))));
  t.equal(purges.filter(Boolean).length, 60);
  t.same([await count(mysql, 'event_outbox'), await count(mysql, 'audit_log'), await count(mysql, 'users'), await count(mysql, 'profiles')], [60, 60, 0, 0]);
});

t.test('of a restore and a purge at the same moment exactly one wins', async (t) => {
  // The restore is given a longer grace than the purge waits, so that both may have the account.
  const needs = await taskNeeds(t);
  const { mysql } = needs;
  await seedDue(mysql, 200);
  const ids = (await mysql.rows<{ id: string }>('SELECT id FROM users')).map((row) => row.id);
  let [purged, restored] = [0, 0];
  const later = <T>(work: () => Promise<T>): Promise<T> => sleep(Math.random() * 3).then(work);
  const race = async (id: string): Promise<void> => {
    const [purge, restore] = await Promise.all([later(() => purgeAccount(needs, id)), later(() => mysql.transaction((tx) => markRestored(tx, id, 365)))]);
    // A purge that met the lock of the restore leaves the account to a later pass, which finds it restored.
    const left = await count(mysql, 'users', `id = '${id}' AND deleted_at IS NULL`);
    const links = (await count(mysql, 'profiles', `user_id = '${id}'`)) + (await count(mysql, 'user_roles', `user_id = '${id}'`)) + (await count(mysql, 'user_tenants', `user_id = '${id}'`));
    if (purge) purged += 1;
    if (restore.kind === 'restored') restored += 1;
    if (purge === (restore.kind === 'restored') || left !== (purge ? 0 : 1) || links !== (purge ? 0 : 3)) t.fail('both won, or rows are half there', { purge, restore, left, links });
  };
  for (let from = 0; from < ids.length; from += 4) await Promise.all(ids.slice(from, from + 4).map(race));
  t.equal(purged + restored, 200);
  figure(t, 'T36', { did: '200 accounts, purge and restore at the same moment', figure: `${purged} purged, ${restored} restored, ${purged + restored - 200} both`, ok: purged + restored === 200 });
  t.ok(purged > 0 && restored > 0, `${purged} purges and ${restored} restores won`);
  t.equal(await count(mysql, 'event_outbox', "type = 'identity.user.permanently_deleted'"), purged);
});
