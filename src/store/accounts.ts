import { v4 as uuid } from 'uuid';
import { isDuplicate, marks, tuples, type Mysql, type Tx, type Value } from './mysql.js';
import type { Status } from './users.js';

/** An account as operators bring it in; addresses are normalised already. */
export interface NewAccount {
  email: string;
  passwordHash: string | null;
  emailVerified: boolean;
  phone: string | null;
  phoneVerified: boolean;
  status: Status;
  /** Names; what does not exist yet is created. */
  roles: string[];
  /** Slugs; what does not exist yet is created. */
  tenants: string[];
  profiles: { provider: string; givenName: string | null; familyName: string | null }[];
}

/** Statements take some 65,000 values and some MiB at most; these many rows stay far below both. */
const MOST_ROWS = 1000;

/** Other imports that may come between look and insert: each time they were ahead by a whole batch. */
const TRIES = 8;

/**
 * Inserts accounts in one transaction, with what `also` writes about those that are new, and gives, by position, the
 * new id or null where the address was taken already.
 */
export async function insertAccounts(mysql: Mysql, accounts: NewAccount[], also: Also): Promise<(string | null)[]> {
  const roles = await ensureNamed(mysql, 'roles', 'name', accounts.flatMap((account) => account.roles));
  const tenants = await ensureNamed(mysql, 'tenants', 'slug', accounts.flatMap((account) => account.tenants));
  for (let tries = 1; ; tries += 1) {
    try {
      return await mysql.transaction((tx) => insertBatch(tx, accounts, roles, tenants, also));
    } catch (error) {
      // Another import took one of the addresses between look and insert: now the look sees it.
      if (!isDuplicate(error) || tries === TRIES) throw error;
    }
  }
}

type Also = (tx: Tx, added: { id: string; email: string }[]) => Promise<void>;

async function insertBatch(tx: Tx, accounts: NewAccount[], roles: Map<string, string>, tenants: Map<string, string>, also: Also): Promise<(string | null)[]> {
  const taken = new Set((await tx.rows<{ email: string }>(`SELECT email FROM users WHERE email IN (${marks(accounts.length)})`, accounts.map((account) => account.email))).map((row) => row.email));
  const ids = accounts.map(({ email }) => {
    if (taken.has(email)) return null;
    taken.add(email);
    return uuid();
  });
  const fresh = accounts.flatMap((account, i) => (ids[i] === null ? [] : [{ ...account, id: ids[i]! }]));
  const now = new Date();
  await insertRows(tx, 'users (id, email, phone, status, password_hash, email_verified_at, phone_verified_at)', fresh.map((a) => [a.id, a.email, a.phone, a.status, a.passwordHash, a.emailVerified ? now : null, a.phoneVerified ? now : null]));
  await insertRows(tx, 'profiles (id, user_id, provider, given_name, family_name)', fresh.flatMap((a) => a.profiles.map((p) => [uuid(), a.id, p.provider, p.givenName, p.familyName])));
  await insertRows(tx, 'user_roles (user_id, role_id)', fresh.flatMap((a) => [...new Set(a.roles)].map((name) => [a.id, roles.get(name)!])));
  await insertRows(tx, 'user_tenants (user_id, tenant_id)', fresh.flatMap((a) => [...new Set(a.tenants)].map((slug) => [a.id, tenants.get(slug)!])));
  await also(tx, fresh);
  return ids;
}

async function insertRows(tx: Tx, into: string, rows: Value[][]): Promise<void> {
  for (let from = 0; from < rows.length; from += MOST_ROWS) {
    const some = rows.slice(from, from + MOST_ROWS);
    await tx.run(`INSERT INTO ${into} VALUES ${tuples(some)}`, some.flat());
  }
}

/** Ids of roles or tenants by their name or slug; the missing ones are created. */
async function ensureNamed(mysql: Mysql, table: 'roles' | 'tenants', column: 'name' | 'slug', wanted: string[]): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  const names = [...new Set(wanted)];
  for (let from = 0; from < names.length; from += MOST_ROWS) {
    const some = names.slice(from, from + MOST_ROWS);
    const find = (): Promise<{ id: string; name: string }[]> => mysql.rows(`SELECT id, ${column} AS name FROM ${table} WHERE ${column} IN (${marks(some.length)})`, some);
    const known = new Set((await find()).map((row) => row.name));
    const missing = some.filter((name) => !known.has(name));
    // IGNORE: another import may create it at the same time.
    const rows = missing.map((name) => (table === 'roles' ? [uuid(), name] : [uuid(), name, name]));
    // IGNORE: another import may create it at the same time.
    if (rows.length > 0) await mysql.run(`INSERT IGNORE INTO ${table === 'roles' ? 'roles (id, name)' : 'tenants (id, name, slug)'} VALUES ${tuples(rows)}`, rows.flat());
    for (const row of await find()) ids.set(row.name, row.id);
  }
  return ids;
}

/** An account that somebody opens for themselves; the address is normalised already and not proven. */
export interface SelfMadeAccount {
  id: string;
  email: string;
  passwordHash: string;
  givenName: string | null;
  familyName: string | null;
}

/** The provider of profiles that people wrote themselves. */
const OWN_PROFILE = 'local';

/** @throws a duplicate (isDuplicate) when the address has an account */
export async function insertSelfMade(tx: Tx, { id, email, passwordHash, givenName, familyName }: SelfMadeAccount): Promise<void> {
  await tx.run('INSERT INTO users (id, email, password_hash) VALUES (?, ?, ?)', [id, email, passwordHash]);
  if (givenName === null && familyName === null) return;
  await tx.run('INSERT INTO profiles (id, user_id, provider, given_name, family_name) VALUES (?, ?, ?, ?, ?)', [uuid(), id, OWN_PROFILE, givenName, familyName]);
}

/** Sets the status; gives the user id, or null when there is no such account. */
export async function setStatus(tx: Tx, email: string, status: Status): Promise<string | null> {
  const id = await idOf(tx, email);
  if (id !== null) await tx.run('UPDATE users SET status = ? WHERE id = ?', [status, id]);
  return id;
}

/** Clears every lock of the account; gives the user id, or null when there is no such account. */
export async function clearLocks(tx: Tx, email: string): Promise<string | null> {
  const id = await idOf(tx, email);
  if (id !== null) await clearLocksOf(tx, id);
  return id;
}

/** Clears every lock of an account, those of its familiar sources too. */
export async function clearLocksOf(tx: Tx, id: string): Promise<void> {
  await tx.run('UPDATE users SET locked_until = NULL, gate_locked_until = NULL WHERE id = ?', [id]);
  await tx.run('UPDATE login_sources SET locked_until = NULL WHERE user_id = ?', [id]);
}

async function idOf(tx: Tx, email: string): Promise<string | null> {
  const rows = await tx.rows<{ id: string; email: string }>('SELECT id, email FROM users WHERE email = ? FOR UPDATE', [email]);
  return rows.find((row) => row.email === email)?.id ?? null;
}

/** Names of the sources that an account is known to log in from. */
export const listSources = (mysql: Mysql, userId: string): Promise<{ network: Buffer; device: Buffer }[]> => mysql.rows('SELECT network, device FROM login_sources WHERE user_id = ?', [userId]);
