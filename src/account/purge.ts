import type { Deps } from '../deps.js';
import { subjectOf } from '../keyring.js';
import { record } from '../store/audit.js';
import { appendEvent } from '../store/outbox.js';
import { eraseAll } from '../store/personal-data.js';
import { lockDue } from '../store/users.js';
import { USER_TABLES } from './user-data.js';

/**
 * Deletes a soft-deleted account for good, with its event and audit entry, in one transaction.
 * @returns false when it is not due (it was restored, or purged by another node) or another transaction holds its row
 */
export async function purgeAccount({ mysql, keyring, config }: Pick<Deps, 'mysql' | 'keyring' | 'config'>, userId: string): Promise<boolean> {
  return mysql.transaction(async (tx) => {
    const account = await lockDue(tx, userId, config.retentionDays);
    if (!account) return false;
    for (const [table, { owner, purge }] of Object.entries(USER_TABLES)) await eraseAll(tx, table, owner, purge, userId);
    const { email, deletedAt, daysInDeletedState, now } = account;
    await appendEvent(tx, 'identity.user.permanently_deleted', { userId, email, originalDeletionAt: deletedAt.toISOString(), daysInDeletedState }, now);
    await record(tx, { userId: null, subject: subjectOf(keyring, userId), action: 'account.purged', status: 'success', ip: null, detail: { daysInDeletedState } });
    return true;
  });
}
