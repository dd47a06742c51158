import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { record, type AuditEntry } from '../store/audit.js';

/** Runs `work`; what it refuses goes into the audit log. A part of the service that is down is nothing the caller did. */
export async function audited<T>({ mysql }: Pick<Deps, 'mysql'>, entry: Omit<AuditEntry, 'status' | 'detail'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'UNAVAILABLE') {
      const sources = error.extras.reasons?.map((reason) => reason.source);
      await record(mysql, { ...entry, status: 'failure', detail: { outcome: error.code, ...(sources ? { sources } : {}) } });
    }
    throw error;
  }
}
