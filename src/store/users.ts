import type { Queryable, Tx } from './mysql.js';

export type Status = 'active' | 'disabled';

/** An account whose row is locked until the commit. */
export interface HeldAccount {
  email: string;
  emailVerified: boolean;
  passwordHash: string | null;
  now: Date;
}

/** Locks the row of an account; null when the account is not active. */
export async function holdActive(tx: Tx, id: string): Promise<HeldAccount | null> {
  const [row] = await tx.rows<Omit<HeldAccount, 'emailVerified'> & { emailVerified: unknown }>(
    `SELECT email, email_verified_at IS NOT NULL AS emailVerified, password_hash AS passwordHash, UTC_TIMESTAMP(3) AS now
     FROM users WHERE id = ? AND status = 'active' AND deleted_at IS NULL FOR UPDATE`,
    [id],
  );
  return row ? { ...row, emailVerified: Boolean(row.emailVerified) } : null;
}

/** Notes that the owner receives mail at the address; false when that was known. */
export async function markEmailVerified(tx: Tx, id: string): Promise<boolean> {
  const { affected } = await tx.run('UPDATE users SET email_verified_at = UTC_TIMESTAMP(3) WHERE id = ? AND email_verified_at IS NULL', [id]);
  return affected === 1;
}

export async function setPasswordHash(tx: Tx, id: string, hash: string): Promise<void> {
  await tx.run('UPDATE users SET password_hash = ? WHERE id = ?', [hash, id]);
}

/** Locks the row of an active account; false when there is none, or when its password is another than the one that was read. */
export async function lockActive(tx: Tx, { id, passwordHash }: { id: string; passwordHash: string | null }): Promise<boolean> {
  const [row] = await tx.rows<{ passwordHash: string | null }>("SELECT password_hash AS passwordHash FROM users WHERE id = ? AND status = 'active' AND deleted_at IS NULL FOR UPDATE", [id]);
  return row !== undefined && row.passwordHash === passwordHash;
}

// By the database's clock, like everything that is compared with deleted_at.
const DUE = 'deleted_at < UTC_TIMESTAMP(3) - INTERVAL ? DAY';

/** How many accounts were deleted more than `days` ago, counted up to a million: a longer count is not worth its time. */
export async function countDue(on: Queryable, days: number): Promise<number> {
  const [row] = await on.rows<{ due: number }>(`SELECT COUNT(*) AS due FROM (SELECT id FROM users WHERE ${DUE} LIMIT 1000000) AS counted`, [days]);
  return row!.due;
}

/** Up to 100 of these accounts, the longest deleted first, behind `after` in that order. */
export const dueAccounts = (on: Queryable, days: number, after: { deletedAt: Date; id: string }): Promise<{ id: string; deletedAt: Date }[]> =>
  on.rows(`SELECT id, deleted_at AS deletedAt FROM users WHERE ${DUE} AND deleted_at >= ? AND (deleted_at > ? OR id > ?) ORDER BY deleted_at, id LIMIT 100`, [days, after.deletedAt, after.deletedAt, after.id]);

/** An account that is locked to be purged. */
export interface DueAccount {
  email: string;
  deletedAt: Date;
  /** Whole days since then. */
  daysInDeletedState: number;
  now: Date;
}

/** Locks the row of an account that is due; null when it is not, or when another transaction holds it. */
export async function lockDue(tx: Tx, id: string, days: number): Promise<DueAccount | null> {
  const [row] = await tx.rows<DueAccount>(
    `SELECT email, deleted_at AS deletedAt, TIMESTAMPDIFF(DAY, deleted_at, UTC_TIMESTAMP(3)) AS daysInDeletedState, UTC_TIMESTAMP(3) AS now
     FROM users WHERE id = ? AND ${DUE} FOR UPDATE SKIP LOCKED`,
    [id, days],
  );
  return row ?? null;
}
