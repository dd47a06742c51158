import { marks, type Mysql, type Queryable, type Tx } from './mysql.js';

export type Channel = 'EMAIL' | 'SMS' | 'WHATSAPP';

/** A message that waits to be sent. */
export interface Waiting {
  id: string;
  userId: string | null;
  tenant: string | null;
  template: string;
  channel: Channel;
  recipient: string;
  /** The values of the message, sealed. */
  payload: Buffer;
}

/** A message that one sender holds; `attempts` counts claims and so names this one. */
export type Claimed = Omit<Waiting, 'userId' | 'channel'> & { attempts: number };

export async function insertNotification(tx: Tx, row: Waiting): Promise<void> {
  await tx.run('INSERT INTO notification_outbox (id, user_id, tenant, template, channel, recipient, payload) VALUES (?, ?, ?, ?, ?, ?, ?)', [
    row.id,
    row.userId,
    row.tenant,
    row.template,
    row.channel,
    row.recipient,
    row.payload,
  ]);
}

/** Messages of a template that were written to an account within 24 hours, by channel. */
export async function countOfDay(on: Queryable, userId: string, template: string): Promise<Map<Channel, number>> {
  const rows = await on.rows<{ channel: Channel; n: number }>(
    'SELECT channel, COUNT(*) AS n FROM notification_outbox WHERE user_id = ? AND template = ? AND created_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY GROUP BY channel',
    [userId, template],
  );
  return new Map(rows.map(({ channel, n }) => [channel, n]));
}

/** How many messages one claim takes at most. */
export const BATCH = 8;

const DUE = 'next_attempt_at <= UTC_TIMESTAMP(3) AND (claimed_until IS NULL OR claimed_until <= UTC_TIMESTAMP(3))';

/**
 * Takes due messages of a channel for `leaseMs`; `more` tells that others may be due. A claim that is not settled by
 * then (a killed node) is due again.
 */
export function claimDue(mysql: Mysql, channel: Channel, leaseMs: number): Promise<{ claimed: Claimed[]; more: boolean }> {
  return mysql.transaction(async (tx) => {
    // Looked up without locks, then locked by primary key: a locking scan holds rows that it only passes, and
    // another claim that skips them at that moment would leave a due message until the next look.
    const due = await tx.rows<{ id: string }>(`SELECT id FROM notification_outbox WHERE channel = ? AND ${DUE} ORDER BY next_attempt_at LIMIT ${BATCH}`, [channel]);
    if (due.length === 0) return { claimed: [], more: false };
    const claimed = await tx.rows<Claimed>(
      `SELECT id, tenant, template, recipient, payload, attempts + 1 AS attempts FROM notification_outbox FORCE INDEX (PRIMARY)
       WHERE id IN (${marks(due.length)}) AND ${DUE} FOR UPDATE SKIP LOCKED`,
      due.map((row) => row.id),
    );
    if (claimed.length > 0) {
      await tx.run(`UPDATE notification_outbox SET attempts = attempts + 1, claimed_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND WHERE id IN (${marks(claimed.length)})`, [leaseMs * 1000, ...claimed.map((row) => row.id)]);
    }
    return { claimed, more: due.length === BATCH };
  });
}

/** What stays of a message that is done with: no recipient, no values. */
const EMPTIED = 'payload = NULL, recipient = NULL, next_attempt_at = NULL, claimed_until = NULL';

/** Not tied to the claim: who sent it knows, even when another sender has claimed it since. */
export async function markSent(on: Queryable, id: string): Promise<void> {
  await on.run(`UPDATE notification_outbox SET sent_at = UTC_TIMESTAMP(3), last_error = NULL, ${EMPTIED} WHERE id = ? AND sent_at IS NULL`, [id]);
}

export async function markFailed(on: Queryable, claim: Claimed, reason: string): Promise<void> {
  await on.run(`UPDATE notification_outbox SET failed_at = UTC_TIMESTAMP(3), last_error = ?, ${EMPTIED} WHERE id = ? AND attempts = ? AND sent_at IS NULL`, [reason, claim.id, claim.attempts]);
}

/** Gives a claim back, to be due again in `delayMs`. */
export async function postpone(on: Queryable, claim: Claimed, reason: string, delayMs: number): Promise<void> {
  await on.run(
    'UPDATE notification_outbox SET next_attempt_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, claimed_until = NULL, last_error = ? WHERE id = ? AND attempts = ? AND sent_at IS NULL',
    [Math.round(delayMs * 1000), reason, claim.id, claim.attempts],
  );
}

/** Deletes messages that were done with and are older than `days`, at most 1,000, and gives how many. */
export async function deleteSettled(on: Queryable, days: number): Promise<number> {
  const { affected } = await on.run('DELETE FROM notification_outbox WHERE created_at < UTC_TIMESTAMP(3) - INTERVAL ? DAY AND next_attempt_at IS NULL ORDER BY created_at LIMIT 1000', [days]);
  return affected;
}

/** Deletes every message of an account, sent or not. */
export async function deleteNotificationsOf(tx: Tx, userId: string): Promise<void> {
  await tx.run('DELETE FROM notification_outbox WHERE user_id = ?', [userId]);
}
