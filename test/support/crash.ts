import { setTimeout as sleep } from 'node:timers/promises';
import { issueCode } from '../../src/account/otp.js';
import { createLog } from '../../src/log.js';
import { marks } from '../../src/store/mysql.js';
import { createRedis, type Redis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import type { Account } from './accounts.js';
import { dial } from './cluster.js';
import type { Node, Nodes } from './nodes.js';
import { times } from './otp.js';
import { until } from './patience.js';
import type { Teardown } from './stores.js';

/** An account of the experiment, with what is known of it at the end. */
export interface Doomed extends Account {
  code: string;
  bearer: Record<string, string>;
  /** Whether the reply said that it was deleted. */
  answered: boolean;
  deleted: boolean;
  /** Rows of MySQL: sessions that are alive, events, audit entries of the deletion, messages to the owner. */
  live: number;
  outbox: number;
  audited: number;
  messages: number;
  /** Event ids that consumers of the stream and subscribers of the channel saw, repeats included. */
  onStream: string[];
  onChannel: string[];
}

export interface Crashes {
  accounts: Doomed[];
  /** The node that runs at the end. */
  node: Node;
  kills: number;
}

/** How long after the last restart everything must be out, in ms. */
const PATIENCE_MS = 60_000;
/** A kill that comes anywhere comes at a random moment after a random number of replies, before the time of one more is over, in ms. */
const KILL_MS = 10;

/** Kills a node amid batches of deletions, at random moments, and starts the next one in its place. */
export async function crashAmidDeletions(t: Teardown, { nodes, needs, account, start, redis: server }: Nodes, deletions: number, atOnce: number): Promise<Crashes> {
  const log = createLog('silent');
  const redis = createRedis(server.url, log);
  await redis.connect();
  const subscriber = dial(server.url);
  t.teardown(() => [redis, subscriber].forEach((client) => client.disconnect()));
  const channel: string[] = [];
  subscriber.on('message', (_channel, text: string) => channel.push(text));
  await subscriber.subscribe('identity.user.deleted');
  const issuing = { ...needs, log, scripts: loadScripts(redis) };

  let node = nodes[0]!;
  let kills = 0;
  const accounts: Doomed[] = [];
  while (accounts.length < deletions) {
    const client = node.client();
    const batch = await times(Math.min(atOnce, deletions - accounts.length), async (): Promise<Doomed> => {
      const owner = await account();
      let accessToken = '';
      // A machine that is busy may be told 503.
      await until(async () => {
        const { status, body } = await client.login(owner.email, owner.password);
        accessToken = String(body['accessToken']);
        return status === 200;
      });
      const code = (await issueCode(issuing, owner, 'delete'))!;
      return { ...owner, code, bearer: { authorization: `Bearer ${accessToken}` }, answered: false, deleted: false, live: 0, outbox: 0, audited: 0, messages: 0, onStream: [], onChannel: [] };
    });
    accounts.push(...batch);
    let told = 0;
    const answers = batch.map(async (one) => {
      const answer = await client.request('DELETE', '/api/auth/account', { headers: one.bearer, body: { otp: one.code } }).catch(() => null);
      one.answered = answer?.status === 200;
      told += 1;
    });
    // The first kill comes while codes are checked, every other as soon as a deletion shows, the rest anywhere.
    if (kills % 2 === 1) {
      while (told < batch.length && !(await isAnyDeleted(needs, batch)));
    } else {
      const enough = kills === 0 ? 0 : Math.floor(Math.random() * batch.length);
      while (told < enough) await sleep(1);
      await sleep(kills === 0 ? 5 : Math.random() * KILL_MS);
    }
    await node.stop('SIGKILL');
    kills += 1;
    await Promise.all(answers);
    node = await start();
  }
  await readRows(needs, accounts);
  await readEvents(redis, channel, accounts);
  return { accounts, node, kills };
}

async function isAnyDeleted({ mysql }: Nodes['needs'], batch: Doomed[]): Promise<boolean> {
  const rows = await mysql.rows(`SELECT id FROM users WHERE deleted_at IS NOT NULL AND id IN (${marks(batch.length)}) LIMIT 1`, batch.map(({ id }) => id));
  return rows.length > 0;
}

async function readRows({ mysql }: Nodes['needs'], accounts: Doomed[]): Promise<void> {
  const rows = await mysql.rows<{ id: string } & Record<'deleted' | 'live' | 'outbox' | 'audited' | 'messages', number>>(
    `SELECT u.id, u.deleted_at IS NOT NULL AS deleted,
       (SELECT COUNT(*) FROM sessions s WHERE s.user_id = u.id AND s.revoked_at IS NULL) AS live,
       (SELECT COUNT(*) FROM event_outbox e WHERE e.user_id = u.id) AS outbox,
       (SELECT COUNT(*) FROM audit_log a WHERE a.user_id = u.id AND a.action = 'account.deleted' AND a.status = 'success') AS audited,
       (SELECT COUNT(*) FROM notification_outbox n WHERE n.user_id = u.id) AS messages
     FROM users u`,
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const one of accounts) {
    const { deleted, ...counts } = byId.get(one.id)!;
    Object.assign(one, counts, { deleted: Boolean(deleted) });
  }
}

/** Reads what other services saw, once all that must be there is, or will not come any more. */
async function readEvents(redis: Redis, channel: string[], accounts: Doomed[]): Promise<void> {
  const wanted = accounts.filter((one) => one.deleted).length;
  const usersOf = (texts: string[]): number => new Set(texts.map((text) => (JSON.parse(text) as { userId: string }).userId)).size;
  let stream: string[] = [];
  for (let waited = 0; waited < PATIENCE_MS; waited += 50) {
    stream = (await redis.xrange('idp:events', '-', '+')).map(([, fields]) => fields[1]!);
    if (usersOf(stream) >= wanted && usersOf(channel) >= wanted) break;
    await sleep(50);
  }
  const byId = new Map(accounts.map((one) => [one.id, one]));
  const note = (texts: string[], place: 'onStream' | 'onChannel'): void => {
    for (const text of texts) {
      const { userId, id } = JSON.parse(text) as { userId: string; id: string };
      byId.get(userId)![place].push(id);
    }
  };
  note(stream, 'onStream');
  note(channel, 'onChannel');
}

/** What must not be, as sentences; an empty list means that nothing was lost, halved or doubled. */
export function faultsOf({ accounts }: Crashes): string[] {
  return accounts.flatMap((one) => {
    const ids = new Set([...one.onStream, ...one.onChannel]).size;
    const whole = one.deleted ? one.live === 0 && one.outbox === 1 && one.audited === 1 && one.messages === 1 : one.live === 1 && one.outbox === 0 && one.audited === 0 && one.messages === 0;
    return [
      ...(whole ? [] : [`${one.id}: half done`]),
      ...(one.answered && !one.deleted ? [`${one.id}: answered, and not deleted`] : []),
      ...(one.deleted && one.onStream.length === 0 ? [`${one.id}: its event is not on the stream`] : []),
      ...(one.deleted && one.onChannel.length === 0 ? [`${one.id}: no subscriber heard its event`] : []),
      ...(!one.deleted && ids > 0 ? [`${one.id}: an event without its deletion`] : []),
      ...(ids > 1 ? [`${one.id}: one event under ${ids} ids`] : []),
    ];
  });
}

/** The outcome in one line. */
export function figureOf(crashes: Crashes): string {
  const { accounts, kills } = crashes;
  const deleted = accounts.filter((one) => one.deleted);
  const answered = deleted.filter((one) => one.answered).length;
  const unique = (place: 'onStream' | 'onChannel'): number => new Set(accounts.flatMap((one) => one[place])).size;
  const repeats = accounts.reduce((sum, one) => sum + one.onStream.length, 0) - unique('onStream');
  const without = (what: string): number => faultsOf(crashes).filter((fault) => fault.includes(what)).length;
  return [
    `${accounts.length} deletions, ${kills} kills: ${deleted.length} deleted (${answered} of them answered), ${accounts.length - deleted.length} untouched`,
    `${unique('onStream')} event ids on the stream, ${unique('onChannel')} at the subscriber, ${repeats} repeats`,
    `${without('its event')} lost, ${without('without its deletion')} without a deletion, ${without('half done')} half done, ${without('ids')} with a second id`,
  ].join('; ');
}
