import type { Queryable, Tx } from './mysql.js';
import type { Status } from './users.js';

/** An account as its deletion and its restore see it, with what is needed to write to its owner. */
export interface Owner {
  id: string;
  email: string;
  emailVerified: boolean;
  phone: string | null;
  phoneVerified: boolean;
  status: Status;
  deletedAt: Date | null;
  /** First name, from the oldest profile that has one. */
  name: string | null;
  /** Slug of the account's tenant, when it has exactly one. */
  tenant: string | null;
}

const OWNER = `
  SELECT u.id, u.email, u.email_verified_at IS NOT NULL AS emailVerified, u.phone, u.phone_verified_at IS NOT NULL AS phoneVerified, u.status, u.deleted_at AS deletedAt,
    (SELECT p.given_name FROM profiles p WHERE p.user_id = u.id AND p.given_name IS NOT NULL ORDER BY p.created_at, p.id LIMIT 1) AS name,
    (SELECT MIN(t.slug) FROM user_tenants ut JOIN tenants t ON t.id = ut.tenant_id WHERE ut.user_id = u.id HAVING COUNT(*) = 1) AS tenant
  FROM users u`;

type OwnerRow = { [K in keyof Owner]: unknown };

const owner = (row: OwnerRow): Owner => ({ ...(row as Owner), emailVerified: Boolean(row.emailVerified), phoneVerified: Boolean(row.phoneVerified) });

export async function findOwner(on: Queryable, id: string): Promise<Owner | null> {
  const [row] = await on.rows<OwnerRow>(`${OWNER} WHERE u.id = ?`, [id]);
  return row ? owner(row) : null;
}

/** The account of an address, compared byte for byte. */
export async function findOwnerByEmail(on: Queryable, email: string): Promise<Owner | null> {
  const rows = await on.rows<OwnerRow>(`${OWNER} WHERE u.email = ?`, [email]);
  // The collation ignores trailing spaces; an address does not.
  const row = rows.find((found) => found.email === email);
  return row ? owner(row) : null;
}

/**
 * Marks an active account as deleted and gives the moment; null when it is not active any more.
 * The row is locked first, so that of any number of callers one gets a moment, and every change of an account waits for this one.
 */
export async function markDeleted(tx: Tx, id: string): Promise<Date | null> {
  const [row] = await tx.rows<{ now: Date }>("SELECT UTC_TIMESTAMP(3) AS now FROM users WHERE id = ? AND status = 'active' AND deleted_at IS NULL FOR UPDATE", [id]);
  if (!row) return null;
  const { affected } = await tx.run('UPDATE users SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL', [row.now, id]);
  return affected === 1 ? row.now : null;
}

/** What a restore came to: the moments, or that the account was not deleted (any more), or that its time is over. */
export type Restored = { kind: 'restored'; deletedAt: Date; restoredAt: Date } | { kind: 'not-deleted' } | { kind: 'expired' };

/** Undoes a deletion that is less than `graceDays` old by the clock of the database. */
export async function markRestored(tx: Tx, id: string, graceDays: number): Promise<Restored> {
  const [row] = await tx.rows<{ deletedAt: Date | null; now: Date; inGrace: unknown }>(
    'SELECT deleted_at AS deletedAt, UTC_TIMESTAMP(3) AS now, deleted_at + INTERVAL ? DAY > UTC_TIMESTAMP(3) AS inGrace FROM users WHERE id = ? FOR UPDATE',
    [graceDays, id],
  );
  // The purge took it while this statement waited.
  if (!row) return { kind: 'expired' };
  if (row.deletedAt === null) return { kind: 'not-deleted' };
  if (!row.inGrace) return { kind: 'expired' };
  const { affected } = await tx.run('UPDATE users SET deleted_at = NULL WHERE id = ? AND deleted_at = ?', [id, row.deletedAt]);
  return affected === 1 ? { kind: 'restored', deletedAt: row.deletedAt, restoredAt: row.now } : { kind: 'not-deleted' };
}
