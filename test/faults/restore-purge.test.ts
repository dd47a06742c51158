import { pathToFileURL } from 'node:url';
import t from 'tap';
import { issueCode } from '../../src/account/otp.js';
import * as purging from '../../src/account/purge.js';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import { pause } from '../support/attempts.js';
import { count } from '../support/due.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { times } from '../support/otp.js';
import { brokenBuild } from '../support/racy.js';

const AT_ONCE = 4;
const DELETED = new Date(Date.now() - 31 * 24 * 3600 * 1000);

// The restore is given a longer grace than the purge waits, so that both may have the account.
const { nodes, account, needs, redis: server } = await startNodes(t, 2, { ACCOUNT_DELETION_GRACE_DAYS: '365', ACCOUNT_RETENTION_DAYS: '365' });
const { mysql } = needs;
const log = createLog('silent');
const redis = createRedis(server.url, log);
await redis.connect();
t.teardown(() => redis.disconnect());
const issuing = { ...needs, log, scripts: loadScripts(redis) };
const purgeNeeds = { ...needs, config: { ...needs.config, retentionDays: 30 } };

interface Outcome {
  purged: boolean;
  restored: boolean;
  /** Rows and events agree with that. */
  whole: boolean;
}

/** Restores an account over HTTP while it is purged. */
async function race(i: number, { purgeAccount }: Pick<typeof purging, 'purgeAccount'>): Promise<Outcome> {
  const { id, email } = await account({ deletedAt: DELETED });
  await mysql.run("INSERT INTO profiles (id, user_id, provider) VALUES (UUID(), ?, 'google')", [id]);
  const otp = (await issueCode(issuing, { id, email }, 'restore'))!;
  const [purged, answer] = await Promise.all([
    pause(Math.random() * 14).then(() => purgeAccount(purgeNeeds, id)),
    nodes[i % 2]!.client().request('POST', '/api/auth/account/restore', { body: { email, otp } }),
  ]);
  const restored = answer.status === 200;
  const rows = (await count(mysql, 'users', `id = '${id}' AND deleted_at IS NULL`)) + (await count(mysql, 'profiles', `user_id = '${id}'`));
  const told = await mysql.rows<{ type: string }>('SELECT type FROM event_outbox WHERE user_id = ?', [id]);
  const types = told.map(({ type }) => type);
  const isPurged = types.includes('identity.user.permanently_deleted');
  // The relay drops what it has published of an account that is gone.
  const whole = purged ? rows === 0 : restored && rows === 2 && !isPurged;
  return { purged, restored, whole };
}

t.test('of a restore over HTTP and a purge at the same moment exactly one wins', { timeout: 400_000 }, async (t) => {
  const rounds = scaled(60, 1_000);
  const outcomes: Outcome[] = [];
  for (let i = 0; i < rounds; i += AT_ONCE) outcomes.push(...(await times(AT_ONCE, (lane) => race(i + lane, purging))));
  const [purged, restored] = [outcomes.filter((one) => one.purged).length, outcomes.filter((one) => one.restored).length];
  const both = outcomes.filter((one) => one.purged && one.restored).length;
  t.same(outcomes.filter(({ whole }) => !whole), [], 'all rows are there or none');
  t.ok(purged > 0 && restored > 0, 'each won some');
  figure(t, 'T36', { did: `${rounds} accounts restored over HTTP on 2 nodes and purged at the same moment`, figure: `${purged} purged, ${restored} restored, ${both} both`, ok: both === 0 && purged + restored === rounds });
});

t.test('a purge that does not look again, under a lock, takes accounts that were restored: the race is one', async (t) => {
  const main = brokenBuild(t, 'dist/src/store/users.js', 'AND ${DUE} FOR UPDATE SKIP LOCKED', 'AND ? > 0');
  const { purgeAccount } = (await import(new URL('account/purge.js', pathToFileURL(main)).href)) as typeof purging;
  // Of an account that is restored already it wants the date of its deletion, and fails.
  const broken = { purgeAccount: (...given: Parameters<typeof purgeAccount>) => purgeAccount(...given).catch(() => false) };
  let both = 0;
  for (let i = 0; i < 20 && both === 0; i += AT_ONCE) both += (await times(AT_ONCE, (lane) => race(i + lane, broken))).filter(({ purged, restored }) => purged && restored).length;
  t.ok(both > 0, `${both} have both`);
});
