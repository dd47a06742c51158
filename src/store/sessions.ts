import { coalesce } from './coalesce.js';
import { gather, type GatherOptions } from './gather.js';
import { ID_COLUMN, marks, padded, wanted, type Mysql, type Queryable, type Tx } from './mysql.js';

export interface NewSession {
  id: string;
  userId: string;
  secretHash: Buffer;
  amr: string[];
  device: string | null;
  ip: string;
  idleMs: number;
  absoluteMs: number;
}

const NEW_SESSION = '(?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)';

export async function insertSessions(tx: Tx, sessions: NewSession[]): Promise<void> {
  if (sessions.length === 0) return;
  await tx.run(
    `INSERT INTO sessions (id, user_id, secret_hash, amr, device, ip_address, created_at, expires_at, absolute_expires_at) VALUES ${sessions.map(() => NEW_SESSION).join(', ')}`,
    sessions.flatMap((one) => [one.id, one.userId, one.secretHash, one.amr.join(' '), one.device, one.ip, Math.min(one.idleMs, one.absoluteMs) * 1000, one.absoluteMs * 1000]),
  );
}

/** A session and its account as a refresh sees them; every "is it past" was decided by the database's clock. */
export interface RefreshState {
  id: string;
  generation: number;
  secretHash: Buffer;
  successorSeal: Buffer | null;
  /** How long ago the newest rotation happened, in ms; null before the first. */
  rotatedMsAgo: number | null;
  revoked: boolean;
  deleted: boolean;
  expired: boolean;
  userId: string | null;
  user: { active: boolean; roles: string[] } | null;
  amr: string[];
  authTime: Date;
  /** What is left of the session when it is refreshed now, in ms. */
  leftMs: number;
  /** By performance.now(): the session was read between these. */
  askedAt: number;
  readAt: number;
}

interface RefreshRow extends Pick<RefreshState, 'id' | 'generation' | 'secretHash' | 'successorSeal' | 'userId' | 'authTime'> {
  rotatedMsAgo: unknown;
  revoked: unknown;
  deleted: unknown;
  expired: unknown;
  amr: string;
  leftMs: unknown;
  known: unknown;
  active: unknown;
  role: string | null;
}

/** Reads sessions for their refresh; reads that come close together become one statement. */
export function refreshReader(mysql: Mysql, idleMs: number, onBatch?: GatherOptions['onBatch']): (id: string) => Promise<RefreshState | null> {
  return coalesce((ids: string[]) => findForRefresh(mysql, ids, idleMs), onBatch);
}

async function findForRefresh(on: Queryable, ids: string[], idleMs: number): Promise<Map<string, RefreshState>> {
  const askedAt = performance.now();
  // A row for each role: an aggregated subquery would cost several times as much.
  const rows = await on.rows<RefreshRow>(
    `SELECT s.id, s.generation, s.secret_hash AS secretHash, s.successor_seal AS successorSeal,
       TIMESTAMPDIFF(MICROSECOND, s.rotated_at, UTC_TIMESTAMP(6)) AS rotatedMsAgo,
       s.revoked_at IS NOT NULL AS revoked, s.deleted_at IS NOT NULL AS deleted, s.expires_at <= UTC_TIMESTAMP(3) AS expired,
       s.user_id AS userId, s.amr, s.created_at AS authTime,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), LEAST(s.absolute_expires_at, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)) AS leftMs,
       u.id IS NOT NULL AS known, u.status = 'active' AND u.deleted_at IS NULL AS active, r.name AS role
     FROM ${wanted(ids.length)} STRAIGHT_JOIN sessions s ON s.id = wanted.id LEFT JOIN users u ON u.id = s.user_id
     LEFT JOIN user_roles ur ON ur.user_id = u.id LEFT JOIN roles r ON r.id = ur.role_id`,
    [idleMs * 1000, ...ids],
  );
  const readAt = performance.now();
  const found = new Map<string, RefreshState>();
  for (const row of rows) {
    let state = found.get(row.id);
    if (!state) found.set(row.id, (state = { ...refreshState(row), askedAt, readAt }));
    if (row.role !== null) state.user?.roles.push(row.role);
  }
  return found;
}

const refreshState = (row: RefreshRow): Omit<RefreshState, 'askedAt' | 'readAt'> => ({
  id: row.id,
  generation: row.generation,
  secretHash: row.secretHash,
  successorSeal: row.successorSeal,
  rotatedMsAgo: row.rotatedMsAgo === null ? null : Number(row.rotatedMsAgo) / 1000,
  revoked: Boolean(row.revoked),
  deleted: Boolean(row.deleted),
  expired: Boolean(row.expired),
  userId: row.userId,
  user: row.known ? { active: Boolean(row.active), roles: [] } : null,
  amr: row.amr.split(' '),
  authTime: row.authTime,
  leftMs: Number(row.leftMs) / 1000,
});

export interface Rotation {
  id: string;
  fromGeneration: number;
  fromHash: Buffer;
  toHash: Buffer;
  seal: Buffer;
}

/** Sessions rotated in one statement at most, and such statements under way: one commits while the next fills. */
const ROTATIONS = { most: 64, lanes: 2 };

/**
 * Makes `toHash` the newest secret of a session if `fromHash` still is and nothing ended the session: of any number of
 * callers with one token exactly one gets true. Rotations that come close together become one statement.
 */
export function rotator(mysql: Mysql, idleMs: number, onBatch?: GatherOptions['onBatch']): (rotation: Rotation) => Promise<boolean> {
  return gather((rotations: Rotation[]) => rotate(mysql, rotations, idleMs), { ...ROTATIONS, onBatch });
}

/** Fills a statement up: no session has this id. */
const NO_ROTATION = ['', 0, Buffer.alloc(32), Buffer.alloc(32), Buffer.alloc(32)];

const WANTED = `SELECT ${ID_COLUMN}, CAST(? AS UNSIGNED) AS fromGeneration, CAST(? AS BINARY(32)) AS fromHash, CAST(? AS BINARY(32)) AS toHash, CAST(? AS BINARY(32)) AS seal`;

/**
 * Everything the decision depends on stands in the one statement. rotated_at is when the row was changed (SYSDATE;
 * sessions run in UTC), not when the wait for it began.
 */
async function rotate(on: Queryable, rotations: Rotation[], idleMs: number): Promise<boolean[]> {
  // All nodes lock rows in one order, so that they wait for each other rather than deadlock.
  const ordered = [...rotations].sort((a, b) => (a.id < b.id ? -1 : 1));
  const rows = padded(ordered.map(({ id, fromGeneration, fromHash, toHash, seal }) => [id, fromGeneration, fromHash, toHash, seal]), NO_ROTATION);
  const { affected } = await on.run(
    `UPDATE (${Array.from({ length: rows.length }, () => WANTED).join(' UNION ALL ')}) w STRAIGHT_JOIN sessions s ON s.id = w.id STRAIGHT_JOIN users u ON u.id = s.user_id
     SET s.generation = s.generation + 1, s.secret_hash = w.toHash, s.successor_seal = w.seal, s.rotated_at = SYSDATE(6),
       s.expires_at = LEAST(s.absolute_expires_at, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)
     WHERE s.generation = w.fromGeneration AND s.secret_hash = w.fromHash
       AND s.revoked_at IS NULL AND s.deleted_at IS NULL AND s.expires_at > UTC_TIMESTAMP(3)
       AND u.status = 'active' AND u.deleted_at IS NULL`,
    [...rows.flat(), idleMs * 1000],
  );
  if (affected === 0) return rotations.map(() => false);
  if (affected === rotations.length) return rotations.map(() => true);
  return rotations.length === 1 ? [true] : winners(on, rotations);
}

/** Who won, when some did not: the new secret of a winner is known to nobody else yet. */
async function winners(on: Queryable, rotations: Rotation[]): Promise<boolean[]> {
  const ids = padded(rotations.map(({ id }) => id));
  const rows = await on.rows<{ id: string; secretHash: Buffer }>(`SELECT id, secret_hash AS secretHash FROM sessions WHERE id IN (${marks(ids.length)})`, ids);
  const newest = new Map(rows.map((row) => [row.id, row.secretHash]));
  return rotations.map(({ id, toHash }) => newest.get(id)?.equals(toHash) ?? false);
}

export type RevokeReason = 'logout' | 'reuse' | 'password_change' | 'deletion' | 'admin';

/** Revokes one session; false when it had ended already. */
export async function revoke(on: Queryable, id: string, reason: RevokeReason): Promise<boolean> {
  const { affected } = await on.run('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3), revoked_reason = ? WHERE id = ? AND revoked_at IS NULL AND deleted_at IS NULL', [reason, id]);
  return affected > 0;
}

const LIVE = 'revoked_at IS NULL AND deleted_at IS NULL AND expires_at > UTC_TIMESTAMP(3)';

/** Revokes one live session of an account; false when the account has no such session. */
export async function revokeOwn(on: Queryable, userId: string, id: string, reason: RevokeReason): Promise<boolean> {
  const { affected } = await on.run(`UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3), revoked_reason = ? WHERE id = ? AND user_id = ? AND ${LIVE}`, [reason, id, userId]);
  return affected > 0;
}

/** Revokes every live session of an account but one, and gives how many. */
export async function revokeOthers(on: Queryable, userId: string, keptId: string, reason: RevokeReason): Promise<number> {
  const { affected } = await on.run(`UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3), revoked_reason = ? WHERE user_id = ? AND id <> ? AND ${LIVE}`, [reason, userId, keptId]);
  return affected;
}

/** A live session as its owner sees it. */
export interface LiveSession {
  id: string;
  createdAt: Date;
  lastUsedAt: Date;
  expiresAt: Date;
  device: string | null;
  ipAddress: string | null;
}

/** Sessions listed at most. */
export const MOST_LISTED = 100;

/** The live sessions of an account, the newest first. */
export const listLive = (on: Queryable, userId: string): Promise<LiveSession[]> =>
  on.rows(
    `SELECT id, created_at AS createdAt, COALESCE(rotated_at, created_at) AS lastUsedAt, expires_at AS expiresAt, device, ip_address AS ipAddress
     FROM sessions WHERE user_id = ? AND ${LIVE} ORDER BY created_at DESC, id DESC LIMIT ${MOST_LISTED}`,
    [userId],
  );

/** What is left of a session, in ms; 0 when there is none. */
export async function leftOf(on: Queryable, id: string): Promise<number> {
  const [row] = await on.rows<{ leftMs: unknown }>(`SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), expires_at) DIV 1000 AS leftMs FROM sessions WHERE id = ? AND ${LIVE}`, [id]);
  return Number(row?.leftMs ?? 0);
}

export async function revokeAll(on: Queryable, userId: string, reason: RevokeReason): Promise<number> {
  const { affected } = await on.run('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3), revoked_reason = ? WHERE user_id = ? AND revoked_at IS NULL AND deleted_at IS NULL', [reason, userId]);
  return affected;
}

/** FROM and WHERE of so many sessions (`s`) and their accounts (`u`), if they are alive and active; `joins` go between. */
export const liveSessions = (n: number, joins = ''): string => `
  ${wanted(n)} STRAIGHT_JOIN sessions s ON s.id = wanted.id STRAIGHT_JOIN users u ON u.id = s.user_id ${joins}
  WHERE s.revoked_at IS NULL AND s.deleted_at IS NULL AND s.expires_at > UTC_TIMESTAMP(3) AND u.status = 'active' AND u.deleted_at IS NULL`;

/** Gives the user of a session that is alive and whose account is active; read anew for every request, since a revocation holds at once. */
export function liveSessionReader(mysql: Mysql, onBatch?: GatherOptions['onBatch']): (id: string) => Promise<{ userId: string } | null> {
  return coalesce(async (ids: string[]) => {
    const rows = await mysql.rows<{ id: string; userId: string }>(
      `SELECT s.id, s.user_id AS userId FROM ${liveSessions(ids.length)}`,
      ids,
    );
    return new Map(rows.map((row) => [row.id, row]));
  }, onBatch);
}
