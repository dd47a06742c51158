import type { Call } from '../http/call.js';
import { marks, tuples, type Queryable } from './mysql.js';
import { eraseSome, MOST_ROWS, type Erasure } from './personal-data.js';

export interface AuditEntry {
  /** null while no account is known. */
  userId: string | null;
  /** Keyed hash of the user id, or of the address while no account is known. */
  subject: string;
  action: 'login' | 'mfa' | 'logout' | 'refresh.reuse' | 'lockout' | 'account.deletion_requested' | 'account.deleted' | 'account.restore_requested' | 'account.restored' | 'account.purged' | 'account.exported' | 'account.disabled' | 'account.enabled' | 'account.unlocked' | 'account.created' | 'account.registered' | 'account.registration_repeated' | 'email.verification_requested' | 'email.verified' | 'password.reset_requested' | 'password.reset' | 'password.changed' | 'session.ended' | 'sessions.ended' | 'mfa.enrolment_started' | 'mfa.enabled' | 'mfa.disabled' | 'mfa.recovery_codes_replaced' | 'mfa.recovery_code_used' | 'oauth' | 'account.provider_linked' | 'account.imported';
  status: 'success' | 'failure';
  ip: string | null;
  /** ISO 3166-1 code of where that is, as far as it was told. */
  country?: string | null;
  /** The session by which it was done, or which it opened or ended. */
  sessionId?: string | null;
  /** Small facts for operators; never an address or a secret. */
  detail?: Record<string, unknown>;
}

/** Where a call came from, and by which session. */
export const whence = ({ ip, place, principal }: Pick<Call, 'ip' | 'place' | 'principal'>): Required<Pick<AuditEntry, 'ip' | 'country' | 'sessionId'>> => ({ ip, country: place?.country ?? null, sessionId: principal?.sessionId ?? null });

/** Writes entries in the order given. */
export async function record(on: Queryable, ...entries: AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const rows = entries.map((entry) => [entry.userId, entry.subject, entry.action, entry.status, entry.ip, entry.country ?? null, entry.sessionId ?? null, entry.detail === undefined ? null : JSON.stringify(entry.detail).slice(0, 1024)]);
  await on.run(`INSERT INTO audit_log (user_id, subject, action, status, ip_address, country, session_id, detail) VALUES ${tuples(rows)}`, rows.flat());
}

/** An entry as its owner may read it. */
export interface StoredEntry {
  id: number;
  action: string;
  status: 'success' | 'failure';
  ip: string | null;
  country: string | null;
  sessionId: string | null;
  detail: Record<string, unknown>;
  createdAt: Date;
}

/** Up to 101 entries of an account, newest first, older than one of them if `before` names it. */
export async function entriesOf(on: Queryable, userId: string, before: number | null, most: number): Promise<StoredEntry[]> {
  // Of two lengths, so that few statements are prepared. The index is named: for a small page the servers may rather
  // walk the primary key backwards, past everybody else's entries.
  const rows = await on.rows<Omit<StoredEntry, 'detail'> & { detail: string | null }>(
    `SELECT id, action, status, ip_address AS ip, country, session_id AS sessionId, detail, created_at AS createdAt
     FROM audit_log FORCE INDEX (audit_log_user) WHERE user_id = ? AND id < ? ORDER BY user_id DESC, id DESC LIMIT ${most <= 51 ? 51 : 101}`,
    [userId, before ?? Number.MAX_SAFE_INTEGER],
  );
  return rows.slice(0, most).map((row) => ({ ...row, detail: detailOf(row.detail) }));
}

/** A detail that was too long for its column was cut, and says nothing any more. */
function detailOf(text: string | null): Record<string, unknown> {
  try {
    return (JSON.parse(text ?? '{}') ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** The id of the newest entry; 0 when there is none. */
export async function lastEntry(on: Queryable): Promise<number> {
  const [row] = await on.rows<{ last: number | null }>('SELECT MAX(id) AS last FROM audit_log');
  return row?.last ?? 0;
}

/**
 * Blanks those of the next entries after an id that name an account which does not exist, and gives how many, and the
 * last entry looked at (null: there are no more).
 */
export async function blankOrphans(on: Queryable, after: number, erasure: Erasure): Promise<{ last: number | null; blanked: number }> {
  const looked = await on.rows<{ id: number; orphan: unknown }>(
    `SELECT a.id, a.user_id IS NOT NULL AND u.id IS NULL AS orphan FROM audit_log a LEFT JOIN users u ON u.id = a.user_id WHERE a.id > ? ORDER BY a.id LIMIT ${MOST_ROWS}`,
    [after],
  );
  const orphans = looked.filter((entry) => Boolean(entry.orphan)).map((entry) => entry.id);
  const blanked = orphans.length === 0 ? 0 : await eraseSome(on, 'audit_log', erasure, `id IN (${marks(orphans.length)})`, orphans);
  return { last: looked.at(-1)?.id ?? null, blanked };
}
