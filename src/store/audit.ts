import { tuples, type Queryable } from './mysql.js';

export interface AuditEntry {
  /** null while no account is known. */
  userId: string | null;
  /** Keyed hash of the user id, or of the address while no account is known. */
  subject: string;
  action: 'login' | 'mfa' | 'logout' | 'refresh.reuse' | 'lockout' | 'account.deletion_requested' | 'account.deleted' | 'account.restore_requested' | 'account.restored' | 'account.purged' | 'account.exported' | 'account.disabled' | 'account.enabled' | 'account.unlocked' | 'account.created';
  status: 'success' | 'failure';
  ip: string | null;
  /** Small facts for operators; never an address or a secret. */
  detail?: Record<string, unknown>;
}

/** Writes entries in the order given. */
export async function record(on: Queryable, ...entries: AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const rows = entries.map((entry) => [entry.userId, entry.subject, entry.action, entry.status, entry.ip, entry.detail === undefined ? null : JSON.stringify(entry.detail).slice(0, 1024)]);
  await on.run(`INSERT INTO audit_log (user_id, subject, action, status, ip_address, detail) VALUES ${tuples(rows)}`, rows.flat());
}
