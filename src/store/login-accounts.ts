import { list } from './json-columns.js';
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
const rolesOf = (user: string): string => `(SELECT JSON_ARRAYAGG(r.name) FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = ${user})`;

/** What is asked for: an account by its address or id, seen from a source. */
export interface LoginQuery {
  by: 'email' | 'id';
  value: string;
  source: Source;
}

const ASKED = 'SELECT ? AS n, CAST(? AS CHAR(254)) COLLATE utf8mb4_bin AS email, CAST(? AS CHAR(36) CHARACTER SET ascii) COLLATE ascii_bin AS id, CAST(? AS BINARY(16)) AS network, CAST(? AS BINARY(16)) AS device';

/** The accounts of several logins in one statement; `column` is what identifies them. */
const loginSql = (column: 'email' | 'id', queries: number): string => `
  SELECT q.n, u.id, u.email, u.status, u.password_hash AS passwordHash, u.deleted_at AS deletedAt,
    ${rolesOf('u.id')} AS roles,
    (SELECT JSON_ARRAYAGG(f.method) FROM mfa_factors f WHERE f.user_id = u.id AND f.verified_at IS NOT NULL) AS factors,
    ${msUntil('u.locked_until')} AS lockMs,
    u.locked_until IS NOT NULL AND u.locked_until <=> u.gate_locked_until AS lockedByGate,
    s.user_id IS NOT NULL AS familiar,
    IF(u.locked_until <=> u.gate_locked_until, ${msUntil('s.locked_until')}, 0) AS sourceLockMs,
    s.last_seen_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY AND s.locked_until IS NULL AS remembered,
    EXISTS (SELECT 1 FROM login_sources k WHERE k.user_id = u.id AND k.network = q.network) AS knownNetwork,
    EXISTS (SELECT 1 FROM login_sources k WHERE k.user_id = u.id AND k.device = q.device) AS knownDevice,
    EXISTS (SELECT 1 FROM login_sources k WHERE k.user_id = u.id) AS seenBefore
  FROM (${Array.from({ length: queries }, () => ASKED).join(' UNION ALL ')}) q
  JOIN users u ON u.${column} = q.${column}
  LEFT JOIN login_sources s ON s.user_id = u.id AND s.network = q.network AND s.device = q.device AND s.last_seen_at > UTC_TIMESTAMP(3) - INTERVAL ${FAMILIAR_DAYS} DAY`;

type LoginRow = { [K in keyof LoginAccount]: unknown } & { n: number };

function loginAccount(row: LoginRow): LoginAccount {
  return {
    ...(row as LoginAccount),
    roles: list(row.roles),
    factors: list(row.factors),
    lockMs: Number(row.lockMs),
    sourceLockMs: Number(row.sourceLockMs),
    lockedByGate: Boolean(row.lockedByGate),
    familiar: Boolean(row.familiar),
    remembered: Boolean(row.remembered),
    knownNetwork: Boolean(row.knownNetwork),
    knownDevice: Boolean(row.knownDevice),
    seenBefore: Boolean(row.seenBefore),
  };
}

/** Accounts by position of their query; an address is compared byte for byte. All queries are by the same column. */
export async function findForLogin(on: Queryable, queries: LoginQuery[]): Promise<(LoginAccount | null)[]> {
  const { by } = queries[0]!;
  const asked = padded(queries);
  const values = asked.flatMap(({ value, source }, n) => [n, by === 'email' ? value : '', by === 'id' ? value : '', source.network, source.device]);
  const found = new Map<number, LoginAccount>();
  for (const row of await on.rows<LoginRow>(loginSql(by, asked.length), values)) {
    // The collation ignores trailing spaces; an address does not.
    if (row[by] === asked[row.n]!.value) found.set(row.n, loginAccount(row));
  }
  return queries.map((_, n) => found.get(n) ?? null);
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
