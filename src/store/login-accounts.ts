import { marks, padded, tuples, type Queryable, type Tx } from './mysql.js';
import type { Status } from './users.js';

/** What the login gate and the password check need to know of an account. */
export interface LoginAccount {
  id: string;
  email: string;
  status: Status;
  passwordHash: string | null;
  deletedAt: Date | null;
  roles: string[];
  /** Second factors that are set up and verified. */
  factors: ('totp' | 'recovery_code')[];
  /** What is left of users.locked_until, in ms; 0 when it is past or unset. */
  lockMs: number;
  /** Whether users.locked_until is what the gate wrote, over or not, rather than what an operator did. */
  lockedByGate: boolean;
  /** Which lock in a row that lock of the gate is or was, and for how long that counts, in ms; step 0: not any more. */
  lockMemory: LockMemory;
  /** Whether the account has logged in from this network and device before. */
  familiar: boolean;
  /** What is left of the lock of that familiar source, in ms. */
  sourceLockMs: number;
  sourceLockMemory: LockMemory;
  /** Whether that was noted within a day and nothing is to be cleared, so that noting it again would change nothing. */
  remembered: boolean;
  knownNetwork: boolean;
  knownDevice: boolean;
  /** Whether the account has logged in before at all. */
  seenBefore: boolean;
  /** Where it logged in before; empty as long as the service cannot tell places. */
  places: SeenPlace[];
}

export interface LockMemory {
  step: number;
  keepMs: number;
}

/** Where an account logged in last in one country. */
export interface SeenPlace {
  country: string;
  latitude: number | null;
  longitude: number | null;
  /** How long ago, in ms. */
  msAgo: number;
}

/** What is known of an address or id that somebody tries to log in with. */
export interface Seen {
  account: LoginAccount | null;
  /** The lock of an address without an account: what is left of it, in ms, and what the gate remembers of it. */
  stranger: { ms: number; memory: LockMemory };
}

export interface Source {
  network: Buffer;
  device: Buffer;
}

/** Days after which a source that was not used is no longer familiar. */
export const FAMILIAR_DAYS = 180;
/** Days after the end of a lock that the gate forgets it. */
export const QUIET_DAYS = 1;

/** Negative once it is past. */
const msUntil = (column: string): string => `TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), ${column}) DIV 1000`;

/** What is asked for: an account by its address or id, seen from a source. */
export interface LoginQuery {
  by: 'email' | 'id';
  value: string;
  /** The keyed hash of an address; with it the lock of an address without an account is found. */
  identity?: Buffer;
  source: Source;
}

/**
 * The accounts of several logins in one statement; `column` is what identifies them. Sources stand in rows of their own
 * (arm 1), and of these only such as share a network or device with one of the logins; so do places (arm 2), and the
 * locks of addresses without an account (arm 3). Joins rather than aggregated subqueries, which cost several times as much.
 */
const loginSql = (column: 'email' | 'id', logins: number, withPlaces: boolean): string => `
  SELECT arm.n AS arm, u.id, u.email, u.status, u.password_hash AS passwordHash, u.deleted_at AS deletedAt,
    u.lock_step AS lockStep, ${msUntil('u.locked_until')} AS lockEndMs, u.locked_until IS NOT NULL AND u.locked_until <=> u.gate_locked_until AS lockedByGate,
    arm.n = 0 AND EXISTS (SELECT 1 FROM login_sources k WHERE k.user_id = u.id) AS seenBefore,
    r.name AS role, f.method AS factor,
    s.network, s.device, s.last_seen_at > UTC_TIMESTAMP(3) - INTERVAL ${FAMILIAR_DAYS} DAY AS familiar, s.lock_step AS sourceStep, ${msUntil('s.locked_until')} AS sourceEndMs,
    s.last_seen_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY AND s.locked_until IS NULL AS remembered,
    ${withPlaces ? `p.country, p.latitude, p.longitude, -(${msUntil('p.last_seen_at')}) AS msAgo` : 'NULL AS country'}, NULL AS identity
  FROM users u CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1${withPlaces ? ' UNION ALL SELECT 2' : ''}) arm
  LEFT JOIN user_roles ur ON arm.n = 0 AND ur.user_id = u.id LEFT JOIN roles r ON r.id = ur.role_id
  LEFT JOIN mfa_factors f ON arm.n = 0 AND f.user_id = u.id AND f.verified_at IS NOT NULL
  LEFT JOIN login_sources s ON arm.n = 1 AND s.user_id = u.id AND (s.network IN (${marks(logins)}) OR s.device IN (${marks(logins)}))
  ${withPlaces ? 'LEFT JOIN login_places p ON arm.n = 2 AND p.user_id = u.id' : ''}
  WHERE u.${column} IN (${marks(logins)})
  ${column === 'email' ? strangerSql(logins, withPlaces) : ''}`;

const strangerSql = (logins: number, withPlaces: boolean): string => `
  UNION ALL SELECT 3, NULL, NULL, NULL, NULL, NULL, g.lock_step, ${msUntil('g.locked_until')}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ${withPlaces ? 'NULL, NULL, NULL, ' : ''}g.identity
  FROM stranger_locks g WHERE g.identity IN (${marks(logins)})`;

interface LoginRow extends Pick<LoginAccount, 'id' | 'email' | 'status' | 'passwordHash' | 'deletedAt'> {
  arm: number;
  lockStep: unknown;
  lockEndMs: unknown;
  lockedByGate: unknown;
  seenBefore: unknown;
  role: string | null;
  factor: LoginAccount['factors'][number] | null;
  network: Buffer | null;
  device: Buffer | null;
  familiar: unknown;
  sourceStep: unknown;
  sourceEndMs: unknown;
  remembered: unknown;
  country: string | null;
  latitude: unknown;
  longitude: unknown;
  msAgo: unknown;
  identity: Buffer | null;
}

const FORGOTTEN: LockMemory = { step: 0, keepMs: 0 };
const NO_LOCK: Seen['stranger'] = { ms: 0, memory: FORGOTTEN };
const QUIET_MS = QUIET_DAYS * 24 * 3600 * 1000;

/** What is left of a lock by when it ends, and what counts of it until it is forgotten. */
function lockOf(step: unknown, endMs: unknown): { ms: number; memory: LockMemory } {
  if (endMs === null) return NO_LOCK;
  const ms = Number(endMs);
  return { ms: Math.max(0, ms), memory: ms + QUIET_MS > 0 ? { step: Number(step), keepMs: ms + QUIET_MS } : FORGOTTEN };
}

/** What the rows of one account say to a login from a source. */
function loginAccount(rows: LoginRow[], { network, device }: Source): LoginAccount {
  const [first] = rows.filter(({ arm }) => arm === 0) as [LoginRow];
  const sources = rows.filter((row) => row.network !== null);
  const same = sources.find((row) => row.network!.equals(network) && row.device!.equals(device));
  const familiar = Boolean(same?.familiar);
  const lockedByGate = Boolean(first.lockedByGate);
  const lock = lockOf(first.lockStep, first.lockEndMs);
  // Changing users.locked_until by hand forgets what the gate wrote, the locks of familiar sources with it.
  const sourceLock = familiar && lockedByGate ? lockOf(same!.sourceStep, same!.sourceEndMs) : NO_LOCK;
  return {
    id: first.id,
    email: first.email,
    status: first.status,
    passwordHash: first.passwordHash,
    deletedAt: first.deletedAt,
    roles: unique(rows.map(({ role }) => role)),
    factors: unique(rows.map(({ factor }) => factor)),
    lockMs: lock.ms,
    lockedByGate,
    lockMemory: lockedByGate ? lock.memory : FORGOTTEN,
    familiar,
    sourceLockMs: sourceLock.ms,
    sourceLockMemory: sourceLock.memory,
    remembered: familiar && Boolean(same!.remembered),
    knownNetwork: sources.some((row) => row.network!.equals(network)),
    knownDevice: sources.some((row) => row.device!.equals(device)),
    seenBefore: Boolean(first.seenBefore),
    places: rows.filter(({ country }) => country !== null).map(seenPlace),
  };
}

// Decimals come as texts.
const seenPlace = ({ country, latitude, longitude, msAgo }: LoginRow): SeenPlace => ({ country: country!, latitude: numberOrNull(latitude), longitude: numberOrNull(longitude), msAgo: Number(msAgo) });
const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const unique = <T extends string>(values: (T | null)[]): T[] => [...new Set(values)].filter((value) => value !== null);

/** What is known, by position of the query; an address is compared byte for byte. All queries are by the same column. */
export async function findForLogin(on: Queryable, queries: LoginQuery[], withPlaces: boolean): Promise<Seen[]> {
  const { by } = queries[0]!;
  const asked = padded(queries);
  const values = [...asked.map(({ source }) => source.network), ...asked.map(({ source }) => source.device), ...asked.map(({ value }) => value)];
  if (by === 'email') values.push(...asked.map(({ identity }) => identity ?? NOBODY));
  const accounts = new Map<string, LoginRow[]>();
  const strangers = new Map<string, LoginRow>();
  for (const row of await on.rows<LoginRow>(loginSql(by, asked.length, withPlaces), values)) {
    const rows = accounts.get(row[by]);
    if (row.identity) strangers.set(row.identity.toString('hex'), row);
    else if (rows) rows.push(row);
    else accounts.set(row[by], [row]);
  }
  // By the value itself, for the collation ignores trailing spaces and an address does not.
  return queries.map(({ value, identity, source }) => {
    const rows = accounts.get(value);
    const lock = strangers.size > 0 && identity ? strangers.get(identity.toString('hex')) : undefined;
    return { account: rows ? loginAccount(rows, source) : null, stranger: lock ? lockOf(lock.lockStep, lock.lockEndMs) : NO_LOCK };
  });
}

const NOBODY = Buffer.alloc(32);

/** Replaces a password hash unless it changed meanwhile. */
export async function renewPasswordHash(on: Queryable, id: string, from: string, to: string): Promise<void> {
  await on.run('UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?', [to, id, from]);
}

/** Keeps accounts as they are until the commit; says by position which are usable and have the password that was read. */
export async function holdAccounts(tx: Tx, accounts: Pick<LoginAccount, 'id' | 'passwordHash'>[]): Promise<boolean[]> {
  const rows = await tx.rows<{ id: string; passwordHash: string | null }>(
    `SELECT id, password_hash AS passwordHash FROM users WHERE id IN (${marks(accounts.length)}) AND status = 'active' AND deleted_at IS NULL LOCK IN SHARE MODE`,
    accounts.map(({ id }) => id),
  );
  const now = new Map(rows.map((row) => [row.id, row.passwordHash]));
  return accounts.map(({ id, passwordHash }) => now.get(id) === passwordHash);
}

/** Notes that accounts logged in from these sources now. */
export async function rememberSources(on: Queryable, seen: { id: string; source: Source }[]): Promise<void> {
  if (seen.length === 0) return;
  const rows = seen.map(({ id, source }) => [id, source.network, source.device]);
  await on.run(`INSERT INTO login_sources (user_id, network, device) VALUES ${tuples(rows)} ON DUPLICATE KEY UPDATE last_seen_at = UTC_TIMESTAMP(3), locked_until = NULL`, rows.flat());
}
