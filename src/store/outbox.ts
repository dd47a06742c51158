import { v7 as uuid } from 'uuid';
import type { EventFields, EventType } from '../events/catalogue.js';
import { marks, tuples, type Queryable, type Tx } from './mysql.js';

/** Writes an event in the transaction of the change it tells of; the relay publishes it after the commit. */
export async function appendEvent<T extends EventType>(tx: Tx, type: T, fields: EventFields<T>, time: Date): Promise<string> {
  const id = uuid();
  const message = JSON.stringify({ id, type, time: time.toISOString(), ...fields });
  await tx.run('INSERT INTO event_outbox (id, user_id, type, message) VALUES (?, ?, ?, ?)', [id, fields.userId, type, message]);
  return id;
}

/** One event of a kind for each of several accounts, written at once. */
export async function appendEvents<T extends EventType>(tx: Tx, type: T, events: EventFields<T>[], time: Date): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map((fields) => {
    const id = uuid();
    return [id, fields.userId, type, JSON.stringify({ id, type, time: time.toISOString(), ...fields })];
  });
  await tx.run(`INSERT INTO event_outbox (id, user_id, type, message) VALUES ${tuples(rows)}`, rows.flat());
}

/** A committed event; `message` is the JSON text that goes out, the same on every repeat. */
export interface StoredEvent {
  seq: number;
  userId: string;
  type: EventType;
  message: string;
}

/** The most events that are handled at once. */
export const EVENT_BATCH = 128;

/** Events that are committed and not known to be published, in order. */
export const dueEvents = (on: Queryable): Promise<StoredEvent[]> =>
  on.rows<StoredEvent>(`SELECT seq, user_id AS userId, type, message FROM event_outbox WHERE published_at IS NULL ORDER BY seq LIMIT ${EVENT_BATCH}`);

/**
 * Notes that events were published. With the last event of a purged account every published event of that
 * account goes, since nothing in the database may name it any longer.
 */
export async function settlePublished(on: Queryable, events: StoredEvent[]): Promise<void> {
  const seqs = padded(events.map((event) => event.seq));
  const purged = events.filter((event) => event.type === 'identity.user.permanently_deleted').map((event) => event.userId);
  // Single statements, no transaction: a node that freezes between two of them must not keep rows locked.
  if (purged.length > 0) {
    const users = padded(purged);
    await on.run(`DELETE FROM event_outbox WHERE user_id IN (${marks(users.length)}) AND (published_at IS NOT NULL OR seq IN (${marks(seqs.length)}))`, [...users, ...seqs]);
  }
  await on.run(`UPDATE event_outbox SET published_at = UTC_TIMESTAMP(3) WHERE seq IN (${marks(seqs.length)})`, seqs);
}

/** Removes the published events of an account; what is still to be published stays and goes once it is out. */
export async function forgetEvents(tx: Tx, userId: string): Promise<void> {
  await tx.run('DELETE FROM event_outbox WHERE user_id = ? AND published_at IS NOT NULL', [userId]);
}

/** Removes up to 1000 events published longer ago than `keepMs`, and gives how many. */
export async function dropOldEvents(on: Queryable, keepMs: number): Promise<number> {
  const { affected } = await on.run('DELETE FROM event_outbox WHERE published_at < UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND ORDER BY published_at, seq LIMIT 1000', [Math.floor(keepMs * 1000)]);
  return affected;
}

/** Where events since a time begin and end in the order of the outbox; null when there are none. */
export async function eventRange(on: Queryable, since: Date): Promise<{ first: number; last: number } | null> {
  // Ids are UUIDs of version 7, which sort by time: they find the place without an index on created_at. Transactions
  // overlap and the clocks of nodes differ, so the search begins five minutes earlier; readers compare created_at.
  const from = Math.max(0, since.getTime() - 300_000).toString(16).padStart(12, '0');
  const [row] = await on.rows<{ first: number | null; last: number | null }>(
    'SELECT (SELECT MIN(seq) FROM (SELECT seq FROM event_outbox WHERE id >= ? ORDER BY id LIMIT 1000) AS earliest) AS first, (SELECT MAX(seq) FROM event_outbox) AS last',
    [`${from.slice(0, 8)}-${from.slice(8)}-0000-0000-000000000000`],
  );
  return row?.first == null || row.last === null ? null : { first: row.first, last: row.last };
}

/** Published events of that range since a time, in order. */
export const publishedEvents = (on: Queryable, range: { first: number; last: number }, since: Date): Promise<StoredEvent[]> =>
  on.rows<StoredEvent>(
    `SELECT seq, user_id AS userId, type, message FROM event_outbox
     WHERE seq BETWEEN ? AND ? AND created_at >= ? AND published_at IS NOT NULL ORDER BY seq LIMIT ${EVENT_BATCH}`,
    [range.first, range.last, since],
  );

/** Which of these events the outbox holds. */
export async function knownEvents(on: Queryable, ids: string[]): Promise<Set<string>> {
  const asked = padded(ids);
  const rows = await on.rows<{ id: string }>(`SELECT id FROM event_outbox WHERE id IN (${marks(asked.length)})`, asked);
  return new Set(rows.map((row) => row.id));
}

/** The list with its last value repeated up to one of three lengths, so that few statements are prepared. */
function padded<T>(values: T[]): T[] {
  const length = [1, 16, EVENT_BATCH].find((size) => size >= values.length)!;
  return Array.from({ length }, (_, index) => values[Math.min(index, values.length - 1)]!);
}
