import type { Deps } from '../deps.js';
import { ApiError, type ErrorCode } from '../errors.js';
import { record, type AuditEntry } from '../store/audit.js';

/** Nothing was checked: of a flood against a lock, or while a store is down, the log keeps nothing. */
const UNCHECKED: ErrorCode[] = ['OTP_LOCKED', 'UNAVAILABLE'];

/** Runs `work`; what it refuses goes into the audit log. */
export async function audited<T>({ mysql }: Pick<Deps, 'mysql'>, entry: Omit<AuditEntry, 'status' | 'detail'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && !UNCHECKED.includes(error.code)) {
      const sources = error.extras.reasons?.map((reason) => reason.source);
      await record(mysql, { ...entry, status: 'failure', detail: { outcome: error.code, ...(sources ? { sources } : {}) } });
    }
    throw error;
  }
}
