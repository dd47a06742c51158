import { startClock, type Clock } from '../../../src/clock.js';
import { loadConfig } from '../../../src/config/load.js';
import type { Config } from '../../../src/config/settings.js';
import type { EventMessage } from '../../../src/events/catalogue.js';
import type { Handlers } from '../../../src/events/handlers.js';
import { startRelay, type Relay } from '../../../src/events/relay.js';
import { createLog, type Log } from '../../../src/log.js';
import { createMetrics, type Metrics } from '../../../src/ops/metrics.js';
import { createMysql, type Mysql } from '../../../src/store/mysql.js';
import { appendEvent } from '../../../src/store/outbox.js';
import { createRedis, type Redis } from '../../../src/store/redis.js';
import { loadScripts, type Scripts } from '../../../src/store/scripts.js';
import { dial } from '../../support/cluster.js';
import { PATIENCE_MS } from '../../support/patience.js';
import { freshDatabase, ownRedis, type OwnRedis, type Teardown } from '../../support/stores.js';

export const ANN = '00000000-0000-4000-8000-00000000000a';
export const BOB = '00000000-0000-4000-8000-00000000000b';
export const USERS = [ANN, BOB, '00000000-0000-4000-8000-00000000000c'];

/** A database and a Redis that no other test sees. */
export async function openStores(t: Teardown): Promise<{ mysql: string; redis: string; server: OwnRedis }> {
  const [mysql, server] = await Promise.all([freshDatabase(t), ownRedis(t)]);
  return { mysql, redis: server.url, server };
}

/** What one node of the service has of its own, as far as events go. */
export interface Node {
  config: Config;
  log: Log;
  metrics: Metrics;
  mysql: Mysql;
  redis: Redis;
  scripts: Scripts;
  clock: Clock;
}

export async function openNode(t: Teardown, urls: { mysql: string; redis: string }, env: Record<string, string> = {}): Promise<Node> {
  const config = loadConfig({ MYSQL_URL: urls.mysql, REDIS_URL: urls.redis, SECRET_KEY: Buffer.alloc(32, 1).toString('base64'), ...env });
  const log = createLog(process.env.LOG_LEVEL ?? 'silent');
  const metrics = createMetrics();
  const mysql = createMysql({ url: urls.mysql, connections: 4, log });
  const redis = createRedis(urls.redis, log);
  await redis.connect();
  const clock = await startClock(mysql);
  t.teardown(async () => {
    clock.stop();
    metrics.close();
    redis.disconnect();
    await mysql.close();
  });
  return { config, log, metrics, mysql, redis, scripts: loadScripts(redis), clock };
}

/** Commits the n-th event of a user; n travels in gracePeriodDays. */
export const commitEvent = (mysql: Mysql, userId: string, n: number): Promise<string> =>
  mysql.transaction((tx) => appendEvent(tx, 'identity.user.deleted', { userId, email: `${userId}@example.com`, gracePeriodDays: n, permanentDeletionAt: new Date(0).toISOString() }, new Date()));

export type Deleted = EventMessage<'identity.user.deleted'>;

/** Everything on the stream, oldest first. */
export async function streamed(redis: Redis): Promise<Deleted[]> {
  const entries = await redis.xrange('idp:events', '-', '+');
  return entries.map(([, fields]) => JSON.parse(fields[1]!) as Deleted);
}

/** What arrives on the channels of identity events from now on. */
export async function listen(t: Teardown, redisUrl: string, heard: (text: string, channel: string) => void): Promise<void> {
  const client = dial(redisUrl);
  client.on('pmessage', (_pattern: string, channel: string, text: string) => heard(text, channel));
  await client.psubscribe('identity.*');
  t.teardown(() => client.disconnect());
}

/** Waits until `holds` does, and gives how long that took in ms; fails after `ms`. */
export async function until(holds: () => boolean | Promise<boolean>, ms = PATIENCE_MS): Promise<number> {
  const started = performance.now();
  while (!(await holds())) {
    if (performance.now() - started > ms) throw new Error(`not within ${ms} ms: ${holds.toString()}`);
    await pause(5);
  }
  return performance.now() - started;
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The handlers of a node without IDENTITY_HANDLERS. */
export const NO_HANDLERS: Pick<Handlers, 'deliver' | 'waiting'> = { deliver: () => Promise.resolve(), waiting: () => 0 };

/** A relay that is closed before the stores of its node are. */
export function relayOn(t: Teardown, node: Node, handlers = NO_HANDLERS): Relay {
  const relay = startRelay(node, handlers);
  t.teardown(() => relay.close());
  return relay;
}

/** How many events wait to be published. */
export const unpublished = async ({ mysql }: Pick<Node, 'mysql'>): Promise<number> => (await mysql.rows('SELECT seq FROM event_outbox WHERE published_at IS NULL')).length;

/** Users whose events skipped ahead, or came back under another id: a repeat may begin earlier, never later, and end anywhere: what is new follows the newest. */
export function disorder(messages: Deleted[]): string[] {
  const last = new Map<string, number>();
  const newest = new Map<string, number>();
  const ids = new Map<string, string>();
  const wrong: string[] = [];
  for (const { id, userId, gracePeriodDays: n } of messages) {
    const isNew = n === (newest.get(userId) ?? 0) + 1;
    if (n > (last.get(userId) ?? 0) + 1 && !isNew) wrong.push(`${userId}: ${last.get(userId) ?? 0} then ${n}`);
    last.set(userId, n);
    if (isNew) newest.set(userId, n);
    const known = ids.get(`${userId} ${n}`) ?? id;
    if (known !== id) wrong.push(`${userId}: ${n} has two ids`);
    ids.set(`${userId} ${n}`, id);
  }
  return wrong;
}
