import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { issueCode } from '../../src/account/otp.js';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import type { Account } from '../support/accounts.js';
import { startNodes } from '../support/nodes.js';
import { times } from '../support/otp.js';

/** Rounds of 20 deletions, each ended by a kill: 4 in the test suite, more by hand (KILL_ROUNDS=25). */
const ROUNDS = Number(process.env['KILL_ROUNDS'] ?? 4);
const AT_ONCE = 20;

interface Doomed extends Account {
  code: string;
  bearer: Record<string, string>;
}

t.test('a node killed amid deletions leaves each account whole: active without an event, or deleted with one that is published', async (t) => {
  const { nodes, needs, account, start, redis: server } = await startNodes(t, 1);
  const log = createLog('silent');
  const redis = createRedis(server.url, log);
  await redis.connect();
  t.teardown(() => redis.disconnect());
  const issuing = { ...needs, log, scripts: loadScripts(redis) };

  let node = nodes[0]!;
  const doomed: Doomed[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const client = node.client();
    const batch = await times(AT_ONCE, async (): Promise<Doomed> => {
      const owner = await account();
      const { accessToken } = (await client.login(owner.email, owner.password)).body as { accessToken: string };
      return { ...owner, code: (await issueCode(issuing, owner, 'delete'))!, bearer: { authorization: `Bearer ${accessToken}` } };
    });
    doomed.push(...batch);
    const answers = batch.map(({ code, bearer }) => client.request('DELETE', '/api/auth/account', { headers: bearer, body: { otp: code } }).catch(() => null));
    // The first kill comes while codes are checked, the later ones anywhere.
    await sleep(round === 0 ? 5 : Math.random() * 200);
    await node.stop('SIGKILL');
    await Promise.all(answers);
    node = await start();
  }

  const accounts = await needs.mysql.rows<{ id: string; deleted: number; live: number; events: number; audited: number; pending: number }>(
    `SELECT u.id, u.deleted_at IS NOT NULL AS deleted,
       (SELECT COUNT(*) FROM sessions s WHERE s.user_id = u.id AND s.revoked_at IS NULL) AS live,
       (SELECT COUNT(*) FROM event_outbox e WHERE e.user_id = u.id) AS events,
       (SELECT COUNT(*) FROM audit_log a WHERE a.user_id = u.id AND a.action = 'account.deleted' AND a.status = 'success') AS audited,
       (SELECT COUNT(*) FROM notification_outbox n WHERE n.user_id = u.id) AS pending
     FROM users u`,
  );
  const deleted = accounts.filter((one) => one.deleted);
  const active = accounts.filter((one) => !one.deleted);
  t.comment(`${accounts.length} deletions, ${ROUNDS} kills: ${deleted.length} deleted, ${active.length} untouched`);
  t.equal(accounts.length, ROUNDS * AT_ONCE);
  t.same(deleted.filter((one) => one.live !== 0 || one.events !== 1 || one.audited !== 1 || one.pending !== 1), []);
  t.same(active.filter((one) => one.live !== 1 || one.events !== 0 || one.audited !== 0 || one.pending !== 0), []);

  const published = async (): Promise<Map<string, Set<string>>> => {
    const ids = new Map<string, Set<string>>();
    for (const [, [, text]] of await redis.xrange('idp:events', '-', '+')) {
      const { userId, id } = JSON.parse(text!) as { userId: string; id: string };
      ids.set(userId, (ids.get(userId) ?? new Set()).add(id));
    }
    return ids;
  };
  for (let waited = 0; waited < 5000 && (await published()).size < deleted.length; waited += 50) await sleep(50);
  const stream = await published();
  t.same([...stream.keys()].sort(), deleted.map(({ id }) => id).sort());
  t.ok([...stream.values()].every((ids) => ids.size === 1), 'repeats have the same id');

  // The node that held the claim is dead: once it has lapsed the code is good again.
  const survivor = doomed.find(({ id }) => active.some((one) => one.id === id))!;
  let status = 0;
  for (let waited = 0; waited < 12_000 && status !== 200; waited += 250) {
    status = (await node.client().request('DELETE', '/api/auth/account', { headers: survivor.bearer, body: { otp: survivor.code } })).status;
    if (status !== 200) await sleep(250);
  }
  t.equal(status, 200);
});
