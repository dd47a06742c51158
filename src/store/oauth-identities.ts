import { v4 as uuid } from 'uuid';
import type { Queryable, Tx } from './mysql.js';
import type { Status } from './users.js';

/** A person as a provider names them. */
export interface Identity {
  issuer: string;
  subject: string;
  /** The provider's id in this service. */
  provider: string;
}

export interface Names {
  givenName: string | null;
  familyName: string | null;
}

/** The account that an identity belongs to; null also when its row was deleted by hand. */
export async function userOfIdentity(on: Queryable, { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>): Promise<string | null> {
  const [row] = await on.rows<{ userId: string }>('SELECT i.user_id AS userId FROM oauth_identities i JOIN users u ON u.id = i.user_id WHERE i.issuer = ? AND i.subject = ?', [issuer, subject]);
  return row?.userId ?? null;
}

/**
 * Gives an identity to an account, with a profile of the provider's names.
 * @throws a duplicate (`isDuplicate`) when the identity has an account, or the account another identity of the issuer
 */
export async function insertIdentity(tx: Tx, { issuer, subject, provider }: Identity, userId: string, { givenName, familyName }: Names): Promise<void> {
  // What is left of an account that was deleted by hand must not shut its owner out.
  await tx.run('DELETE i FROM oauth_identities i LEFT JOIN users u ON u.id = i.user_id WHERE i.issuer = ? AND i.subject = ? AND u.id IS NULL', [issuer, subject]);
  await tx.run('INSERT INTO oauth_identities (issuer, subject, user_id, provider) VALUES (?, ?, ?, ?)', [issuer, subject, userId, provider]);
  await tx.run('INSERT INTO profiles (id, user_id, provider, given_name, family_name) VALUES (?, ?, ?, ?, ?)', [uuid(), userId, provider, givenName, familyName]);
}

/** The account of an address as it is before an identity is linked to it. */
export interface Linkable {
  id: string;
  status: Status;
  deletedAt: Date | null;
  emailVerified: boolean;
  /** The subject of this issuer that it belongs to already. */
  subject: string | null;
}

/** Locks the account of an address, compared byte for byte. */
export async function lockLinkable(tx: Tx, email: string, issuer: string): Promise<Linkable | null> {
  const rows = await tx.rows<{ [K in keyof Linkable]: unknown } & { email: string }>(
    `SELECT u.id, u.email, u.status, u.deleted_at AS deletedAt, u.email_verified_at IS NOT NULL AS emailVerified,
       (SELECT i.subject FROM oauth_identities i WHERE i.user_id = u.id AND i.issuer = ?) AS subject
     FROM users u WHERE u.email = ? FOR UPDATE`,
    [issuer, email],
  );
  // The collation ignores trailing spaces; an address does not.
  const row = rows.find((found) => found.email === email);
  return row ? { ...(row as unknown as Linkable), emailVerified: Boolean(row.emailVerified) } : null;
}

/**
 * Creates an account without a password, its address verified.
 * @throws a duplicate (`isDuplicate`) when the address is taken
 */
export async function insertFederatedUser(tx: Tx, email: string): Promise<string> {
  const id = uuid();
  await tx.run('INSERT INTO users (id, email, email_verified_at) VALUES (?, ?, UTC_TIMESTAMP(3))', [id, email]);
  return id;
}
