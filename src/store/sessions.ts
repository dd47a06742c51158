import { coalesce } from './coalesce.js';
import { marks, type Mysql, type Queryable, type Tx } from './mysql.js';
import { parsed } from './json-columns.js';

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
}

type RefreshRow = { [K in keyof Omit<RefreshState, 'user'>]: unknown } & { known: unknown; active: unknown; roles: unknown };

export async function findForRefresh(on: Queryable, id: string, idleMs: number): Promise<RefreshState | null> {
  const [row] = await on.rows<RefreshRow>(
    `SELECT s.id, s.generation, s.secret_hash AS secretHash, s.successor_seal AS successorSeal,
       TIMESTAMPDIFF(MICROSECOND, s.rotated_at, UTC_TIMESTAMP(6)) AS rotatedMsAgo,
       s.revoked_at IS NOT NULL AS revoked, s.deleted_at IS NOT NULL AS deleted, s.expires_at <= UTC_TIMESTAMP(3) AS expired,
       s.user_id AS userId, s.amr, s.created_at AS authTime,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), LEAST(s.absolute_expires_at, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)) AS leftMs,
       u.id IS NOT NULL AS known, u.status = 'active' AND u.deleted_at IS NULL AS active,
       (SELECT JSON_ARRAYAGG(r.name) FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = u.id) AS roles
     FROM sessions s LEFT JOIN users u ON u.id = s.user_id WHERE s.id = ?`,
    [idleMs * 1000, id],
  );
  if (!row) return null;
  return {
    ...(row as unknown as RefreshState),
    rotatedMsAgo: row.rotatedMsAgo === null ? null : Number(row.rotatedMsAgo) / 1000,
    revoked: Boolean(row.revoked),
    deleted: Boolean(row.deleted),
    expired: Boolean(row.expired),
    user: row.known ? { active: Boolean(row.active), roles: parsed<string[]>(row.roles) ?? [] } : null,
    amr: (row.amr as string).split(' '),
    leftMs: Number(row.leftMs) / 1000,
  };
}

export interface Rotation {
  id: string;
  fromGeneration: number;
  fromHash: Buffer;
  toHash: Buffer;
  seal: Buffer;
  idleMs: number;
}

/**
 * Makes `toHash` the newest secret if `fromHash` still is and nothing ended the session: of any number of
 * callers with one token exactly one gets true. Everything the decision depends on stands in the statement.
 * rotated_at is when the row was changed (SYSDATE; sessions run in UTC), not when the wait for it began.
 */
export async function rotate(on: Queryable, rotation: Rotation): Promise<boolean> {
  const { affected } = await on.run(
    `UPDATE sessions s JOIN users u ON u.id = s.user_id
     SET s.generation = s.generation + 1, s.secret_hash = ?, s.successor_seal = ?, s.rotated_at = SYSDATE(6),
       s.expires_at = LEAST(s.absolute_expires_at, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)
     WHERE s.id = ? AND s.generation = ? AND s.secret_hash = ?
       AND s.revoked_at IS NULL AND s.deleted_at IS NULL AND s.expires_at > UTC_TIMESTAMP(3)
       AND u.status = 'active' AND u.deleted_at IS NULL`,
    [rotation.toHash, rotation.seal, rotation.idleMs * 1000, rotation.id, rotation.fromGeneration, rotation.fromHash],
  );
  return affected > 0;
}

export type RevokeReason = 'logout' | 'reuse' | 'password_change' | 'deletion' | 'admin';

/** Revokes one session; false when it had ended already. */
export async function revoke(on: Queryable, id: string, reason: RevokeReason): Promise<boolean> {
  const { affected } = await on.run('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3), revoked_reason = ? WHERE id = ? AND revoked_at IS NULL AND deleted_at IS NULL', [reason, id]);
  return affected > 0;
}

export async function revokeAll(on: Queryable, userId: string, reason: RevokeReason): Promise<number> {
  const { affected } = await on.run('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3), revoked_reason = ? WHERE user_id = ? AND revoked_at IS NULL AND deleted_at IS NULL', [reason, userId]);
  return affected;
}

/** Gives the user of a session that is alive and whose account is active; read anew for every request, since a revocation holds at once. */
export function liveSessionReader(mysql: Mysql): (id: string) => Promise<{ userId: string } | null> {
  return coalesce(async (ids: string[]) => {
    const rows = await mysql.rows<{ id: string; userId: string }>(
      `SELECT s.id, s.user_id AS userId FROM sessions s JOIN users u ON u.id = s.user_id
       WHERE s.id IN (${marks(ids.length)}) AND s.revoked_at IS NULL AND s.deleted_at IS NULL AND s.expires_at > UTC_TIMESTAMP(3)
         AND u.status = 'active' AND u.deleted_at IS NULL`,
      ids,
    );
    return new Map(rows.map((row) => [row.id, row]));
  }, 64);
}
