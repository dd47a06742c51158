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
  /** Whether the account has logged in from this network and device before. */
  familiar: boolean;
  /** What is left of the lock of that familiar source, in ms. */
  sourceLockMs: number;
  /** Whether that was noted within a day and nothing is to be cleared, so that noting it again would change nothing. */
  remembered: boolean;
  knownNetwork: boolean;
  knownDevice: boolean;
  /** Whether the account has logged in before at all. */
  seenBefore: boolean;
}

export interface Source {
  network: Buffer;
  device: Buffer;
}

/** Days after which a source that was not used is no longer familiar. */
export const FAMILIAR_DAYS = 180;

const msUntil = (column: string): string => `GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), COALESCE(${column}, UTC_TIMESTAMP(3))) DIV 1000)`;

/** What is asked for: an account by its address or id, seen from a source. */
export interface LoginQuery {
  by: 'email' | 'id';
  value: string;
  source: Source;
}

/**
 * The accounts of several logins in one statement; `column` is what identifies them. Sources stand in rows of their own
 * (arm 1), and of these only such as share a network or device with one of the logins. Joins rather than aggregated
 * subqueries, which cost several times as much.
 */
const loginSql = (column: 'email' | 'id', logins: number): string => `
  SELECT arm.n AS arm, u.id, u.email, u.status, u.password_hash AS passwordHash, u.deleted_at AS deletedAt,
    ${msUntil('u.locked_until')} AS lockMs, u.locked_until IS NOT NULL AND u.locked_until <=> u.gate_locked_until AS lockedByGate,
    arm.n = 0 AND EXISTS (SELECT 1 FROM login_sources k WHERE k.user_id = u.id) AS seenBefore,
    r.name AS role, f.method AS factor,
    s.network, s.device, s.last_seen_at > UTC_TIMESTAMP(3) - INTERVAL ${FAMILIAR_DAYS} DAY AS familiar,
    IF(u.locked_until <=> u.gate_locked_until, ${msUntil('s.locked_until')}, 0) AS sourceLockMs,
    s.last_seen_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY AND s.locked_until IS NULL AS remembered
  FROM users u CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1) arm
  LEFT JOIN user_roles ur ON arm.n = 0 AND ur.user_id = u.id LEFT JOIN roles r ON r.id = ur.role_id
  LEFT JOIN mfa_factors f ON arm.n = 0 AND f.user_id = u.id AND f.verified_at IS NOT NULL
  LEFT JOIN login_sources s ON arm.n = 1 AND s.user_id = u.id AND (s.network IN (${marks(logins)}) OR s.device IN (${marks(logins)}))
  WHERE u.${column} IN (${marks(logins)})`;

interface LoginRow extends Pick<LoginAccount, 'id' | 'email' | 'status' | 'passwordHash' | 'deletedAt'> {
  arm: number;
  lockMs: unknown;
  lockedByGate: unknown;
  seenBefore: unknown;
  role: string | null;
  factor: LoginAccount['factors'][number] | null;
  network: Buffer | null;
  device: Buffer | null;
  familiar: unknown;
  sourceLockMs: unknown;
  remembered: unknown;
}

/** What the rows of one account say to a login from a source. */
function loginAccount(rows: LoginRow[], { network, device }: Source): LoginAccount {
  const [first] = rows.filter(({ arm }) => arm === 0) as [LoginRow];
  const sources = rows.filter((row) => row.network !== null);
  const same = sources.find((row) => row.network!.equals(network) && row.device!.equals(device));
  const familiar = Boolean(same?.familiar);
  return {
    id: first.id,
    email: first.email,
    status: first.status,
    passwordHash: first.passwordHash,
    deletedAt: first.deletedAt,
    roles: unique(rows.map(({ role }) => role)),
    factors: unique(rows.map(({ factor }) => factor)),
    lockMs: Number(first.lockMs),
    lockedByGate: Boolean(first.lockedByGate),
    familiar,
    sourceLockMs: familiar ? Number(same!.sourceLockMs) : 0,
    remembered: familiar && Boolean(same!.remembered),
    knownNetwork: sources.some((row) => row.network!.equals(network)),
    knownDevice: sources.some((row) => row.device!.equals(device)),
    seenBefore: Boolean(first.seenBefore),
  };
}

const unique = <T extends string>(values: (T | null)[]): T[] => [...new Set(values)].filter((value) => value !== null);

/** Accounts by position of their query; an address is compared byte for byte. All queries are by the same column. */
export async function findForLogin(on: Queryable, queries: LoginQuery[]): Promise<(LoginAccount | null)[]> {
  const { by } = queries[0]!;
  const asked = padded(queries);
  const values = [...asked.map(({ source }) => source.network), ...asked.map(({ source }) => source.device), ...asked.map(({ value }) => value)];
  const found = new Map<string, LoginRow[]>();
  for (const row of await on.rows<LoginRow>(loginSql(by, asked.length), values)) {
    const rows = found.get(row[by]);
    if (rows) rows.push(row);
    else found.set(row[by], [row]);
  }
  // By the value itself, for the collation ignores trailing spaces and an address does not.
  return queries.map(({ value, source }) => {
    const rows = found.get(value);
    return rows ? loginAccount(rows, source) : null;
  });
}

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

/** Writes a lock of the gate, unless a longer one stands; gate_locked_until tells it from one that an operator sets. */
export async function lockByGate(on: Queryable, id: string, ms: number): Promise<void> {
  await on.run(
    `UPDATE users SET locked_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, gate_locked_until = locked_until
     WHERE id = ? AND (locked_until IS NULL OR locked_until < UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)`,
    [ms * 1000, id, ms * 1000],
  );
}

export async function lockSource(on: Queryable, id: string, source: Source, ms: number): Promise<void> {
  await on.run('UPDATE login_sources SET locked_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND WHERE user_id = ? AND network = ? AND device = ?', [ms * 1000, id, source.network, source.device]);
}

/** Notes that accounts logged in from these sources now. */
export async function rememberSources(on: Queryable, seen: { id: string; source: Source }[]): Promise<void> {
  if (seen.length === 0) return;
  const rows = seen.map(({ id, source }) => [id, source.network, source.device]);
  await on.run(`INSERT INTO login_sources (user_id, network, device) VALUES ${tuples(rows)} ON DUPLICATE KEY UPDATE last_seen_at = UTC_TIMESTAMP(3), locked_until = NULL`, rows.flat());
}
