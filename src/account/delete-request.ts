import type { Deps } from '../deps.js';
import { empty } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { record, whence } from '../store/audit.js';
import { findOwner } from '../store/deletions.js';
import { issueCode, ttlMs } from './otp.js';

export type DeleteRequestNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'scripts' | 'clock' | 'notify'>;

/** POST …/account/delete-request: sends a code to the verified address and number of the caller; 204 whatever there is to do. */
export const deleteRequest = userEndpoint({
  tag: 'Account',
  summary: 'Ask for a code that confirms the deletion of the account',
  description: 'The code goes to the verified address and number, and replaces the one before.',
  replies: { 204: null },
  errors: [],
  handle: async (needs: DeleteRequestNeeds, call) => {
    const { config, keyring, log, mysql, clock, notify } = needs;
    const { userId } = call.principal;
    const owner = await findOwner(mysql, userId);
    const contacts = owner ? verifiedContacts(owner) : [];
    // Nobody could be told a code, so none is made: the one before, if any, stays good.
    if (!owner || contacts.length === 0) return empty();
    const expiresAt = new Date(clock.now() + ttlMs(config)).toISOString();
    const otp = await issueCode(needs, owner, 'delete');
    if (otp === null) return empty();
    await mysql.transaction(async (tx) => {
      await tell(tx, needs, owner, contacts, 'account_deletion_requested', { otp, expiresAt, gracePeriodDays: config.graceDays });
      await record(tx, { userId, subject: subjectOf(keyring, userId), action: 'account.deletion_requested', status: 'success', ...whence(call) });
    });
    notify.wake();
    log.info({ requestId: call.requestId, action: 'account.deletion_requested', subject: subjectOf(keyring, userId), ip: call.ip }, 'code for a deletion issued');
    return empty();
  },
});
