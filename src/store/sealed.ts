import type { Purpose } from '../keyring.js';
import type { Queryable, Tx } from './mysql.js';

/** A column whose values are sealed, each with the key of its row as context. */
export interface SealedColumn {
  /** What its values are, for operators. */
  what: string;
  table: string;
  key: string;
  column: string;
  purpose: Purpose;
}

/** Every sealed column. */
export const SEALED: readonly SealedColumn[] = [
  { what: 'signing keys', table: 'signing_keys', key: 'kid', column: 'private_key', purpose: 'signing-key' },
  { what: 'secrets of authenticator apps', table: 'mfa_factors', key: 'id', column: 'secret', purpose: 'totp-secret' },
  { what: 'messages that wait to be sent', table: 'notification_outbox', key: 'id', column: 'payload', purpose: 'notification' },
];

/** Values looked at, and locked, at a time. */
export const SEALED_BATCH = 200;

export async function countSealed(on: Queryable, { table, column }: SealedColumn): Promise<number> {
  const [row] = await on.rows<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table} WHERE ${column} IS NOT NULL`);
  return row!.n;
}

/** The next values behind a key, in the order of the keys. */
export const sealedAfter = (on: Queryable, { table, key, column }: SealedColumn, after: string): Promise<{ id: string; sealed: Buffer }[]> =>
  on.rows(`SELECT ${key} AS id, ${column} AS sealed FROM ${table} WHERE ${key} > ? AND ${column} IS NOT NULL ORDER BY ${key} LIMIT ${SEALED_BATCH}`, [after]);

/** Replaces a value, unless it is another one by now. */
export async function replaceSealed(tx: Tx, { table, key, column }: SealedColumn, id: string, from: Buffer, to: Buffer): Promise<void> {
  await tx.run(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ? AND ${column} = ?`, [to, id, from]);
}

/** Notes that until now values of a former secret were found; `secret` names the present one. */
export async function noteSettling(on: Queryable, secret: Buffer): Promise<void> {
  await on.run('INSERT INTO secret_changes (secret, settled_at) VALUES (?, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE settled_at = UTC_TIMESTAMP(3)', [secret]);
}

/** Notes the same unless something is noted already. */
export async function noteSettled(on: Queryable, secret: Buffer): Promise<void> {
  await on.run('INSERT IGNORE INTO secret_changes (secret, settled_at) VALUES (?, UTC_TIMESTAMP(3))', [secret]);
}

/** When values of a former secret were found last, and whether so many days have passed since. */
export async function settledAt(on: Queryable, secret: Buffer, days: number): Promise<{ at: Date; until: Date; isOver: boolean } | null> {
  const [row] = await on.rows<{ at: Date; until: Date; isOver: number }>(
    `SELECT settled_at AS at, settled_at + INTERVAL ? MICROSECOND AS until, settled_at + INTERVAL ? MICROSECOND <= UTC_TIMESTAMP(3) AS isOver FROM secret_changes WHERE secret = ?`,
    [days * 86_400_000_000, days * 86_400_000_000, secret],
  );
  return row ? { ...row, isOver: Boolean(row.isOver) } : null;
}

/** How many accounts have unused recovery codes that were made before a time. */
export async function countOldRecoveryCodes(on: Queryable, before: Date): Promise<number> {
  const [row] = await on.rows<{ n: number }>(
    `SELECT COUNT(DISTINCT f.user_id) AS n FROM mfa_factors f JOIN mfa_recovery_codes c ON c.user_id = f.user_id
     WHERE f.method = 'recovery_code' AND f.created_at < ? AND c.used_at IS NULL`,
    [before],
  );
  return row!.n;
}
