// Mostly waits.

import { Redis } from 'ioredis';
import t from 'tap';
import { createClient } from '../support/client.js';
import { count, seedDue, until } from '../support/due.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes, type Node } from '../support/nodes.js';
import { brokenBuild } from '../support/racy.js';

/** Accounts that are due: 120 in the test suite, more in npm run test:faults or by hand (DUE=1000). A node purges some 50 a second. */
const DUE = Number(process.env['DUE'] ?? scaled(120, 1_000));
const PATIENCE_MS = 30_000 + DUE * 200;

const purgedBy = async (node: Node): Promise<number> => Number(/^idp_accounts_purged_total (\d+)/m.exec((await createClient(node.opsBase).request('GET', '/metrics')).text)?.[1] ?? 0);

t.test(`three nodes at their nightly task, the one at work killed: each of ${DUE} accounts is purged once`, { timeout: 2 * PATIENCE_MS }, async (t) => {
  const { needs, start, redis: server } = await startNodes(t, 0, { ENABLE_RETENTION_CRON: '1' });
  const { mysql } = needs;
  await seedDue(mysql, DUE);
  const users = await mysql.rows<{ id: string; email: string }>('SELECT id, email FROM users');
  const redis = new Redis(server.url);
  t.teardown(() => redis.disconnect());

  const nodes = await Promise.all([start(), start(), start()]);
  let killed: Node | undefined;
  const seen = await until(async () => {
    const work = await Promise.all(nodes.map(purgedBy));
    killed = nodes[work.findIndex((purged) => purged >= DUE / 4)];
    return killed !== undefined;
  }, PATIENCE_MS);
  t.ok(seen, 'one of them works');
  await killed!.stop('SIGKILL');
  const left = await count(mysql, 'users');
  t.ok(left > 0 && left < DUE, `${left} accounts were left when it died`);
  // The turn of a silent node is another's after 30 s: said to be over now, so that nobody has to wait.
  await mysql.run('UPDATE schedules SET held_until = UTC_TIMESTAMP(3)');

  t.ok(await until(async () => (await count(mysql, 'users')) === 0 && (await count(mysql, 'event_outbox')) === 0, PATIENCE_MS), 'the others do the rest, and publish it');
  const events = (await redis.xrange('idp:events', '-', '+')).map(([, fields]) => JSON.parse(fields[1]!) as { id: string; type: string; userId: string });
  const ids = new Set(events.map((event) => event.id));
  const audit = await count(mysql, 'audit_log', "action = 'account.purged'");
  const orphans = (await count(mysql, 'profiles')) + (await count(mysql, 'user_roles')) + (await count(mysql, 'user_tenants'));
  figure(t, 'T37', { did: `${DUE} due accounts, 3 nodes, the one at work killed with -9 when ${left} were left`, figure: `${ids.size} event ids, ${events.length - ids.size} repeats, ${audit} audit entries, ${orphans} orphans`, ok: ids.size === DUE && audit === DUE && orphans === 0 });
  t.equal(ids.size, DUE);
  t.same(events.map((event) => event.userId).sort().filter((id, n, all) => id !== all[n - 1]), users.map(({ id }) => id).sort(), 'every account has one');
  t.equal(audit, DUE);
  t.equal((await mysql.rows('SELECT DISTINCT subject FROM audit_log')).length, DUE);
  t.equal(orphans, 0);
  for (const node of nodes) {
    if (node !== killed) await node.stop();
    t.same(users.flatMap(({ id, email }) => [id, email]).filter((word) => node.output().includes(word)), [], 'no log line names an account');
  }
});

t.test('without the turn and the lock of the row accounts are purged twice: the race is one', { timeout: 2 * PATIENCE_MS }, async (t) => {
  const main = brokenBuild(t, 'dist/src/store/users.js', 'AND ${DUE} FOR UPDATE SKIP LOCKED', 'AND ? > 0', ['dist/src/store/schedules.js', 'AND (holder IS NULL OR holder = ? OR held_until <= UTC_TIMESTAMP(3))', 'AND ? IS NOT NULL']);
  const due = 60;
  const { needs, start } = await startNodes(t, 0, { ENABLE_RETENTION_CRON: '1' }, main);
  await seedDue(needs.mysql, due);
  await Promise.all([start(), start(), start()]);
  t.ok(await until(async () => (await count(needs.mysql, 'users')) === 0, PATIENCE_MS));
  const audit = (): Promise<number> => count(needs.mysql, 'audit_log', "action = 'account.purged'");
  // The last of the three may still be at it.
  await until(async () => (await audit()) > due, 3000);
  t.ok((await audit()) > due, `${await audit()} purges of ${due} accounts`);
});
