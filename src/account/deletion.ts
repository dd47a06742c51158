import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { permanentDeletionAt } from '../grace.js';
import { json, type UserCall } from '../http/call.js';
import { CLEARING, endCookies } from '../http/cookies.js';
import { userEndpoint } from '../http/endpoint.js';
import { time } from '../http/fields.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { deleteTokens } from '../store/account-tokens.js';
import { record, whence } from '../store/audit.js';
import { findOwner, markDeleted, type Owner } from '../store/deletions.js';
import { deleteMfaTokens } from '../store/mfa.js';
import { appendEvent } from '../store/outbox.js';
import { revokeAll } from '../store/sessions.js';
import { audited } from './audited.js';
import { claimCode, giveBackOnThrow } from './otp.js';

export type DeletionNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'scripts' | 'events' | 'notify' | 'deletionValidators'>;

const body = Type.Object({ otp: Type.String({ minLength: 1, maxLength: 64, description: 'The code that delete-request sent.', examples: ['12345678'] }) });

const Deletion = Type.Object(
  { deletedAt: time(), gracePeriodDays: Type.Integer({ examples: [30] }), permanentDeletionAt: time({ description: 'Until then the account can be restored.' }) },
  { title: 'Deletion' },
);

/** DELETE …/account: soft-deletes the account of the caller, once the code is right and nobody objects. */
export const deleteAccount = userEndpoint({
  tag: 'Account',
  summary: 'Delete the account',
  description: 'Other services may object. Within the grace period the owner can restore the account.',
  body,
  replies: { 200: { body: Deletion, description: 'The account is deleted and every session of it ended.', headers: CLEARING } },
  errors: ['OTP_INVALID', 'OTP_LOCKED', 'DELETION_BLOCKED', 'DELETION_CHECK_UNAVAILABLE'],
  handle: async (needs: DeletionNeeds, call) => {
    const { config, keyring, log, mysql } = needs;
    const { userId } = call.principal;
    const entry = { userId, subject: subjectOf(keyring, userId), action: 'account.deleted', ...whence(call) } as const;
    const owner = await findOwner(mysql, userId);
    // The account went between the two reads.
    if (!owner) throw new ApiError('UNAUTHENTICATED');

    const deletedAt = await audited(needs, entry, async () => {
      const claim = await claimCode(needs, owner, 'delete', call.body.otp);
      const moment = await giveBackOnThrow(claim, async () => {
        await demandConsent(needs, owner);
        return softDelete(needs, call, owner);
      });
      await claim.spend();
      // Another request was faster, with a code that had been issued since.
      if (!moment) throw new ApiError('OTP_INVALID');
      return moment;
    });
    needs.events.wake();
    needs.notify.wake();
    log.info({ requestId: call.requestId, action: 'account.deleted', subject: entry.subject, ip: call.ip }, 'account deleted');
    return json(200, { deletedAt: deletedAt.toISOString(), gracePeriodDays: config.graceDays, permanentDeletionAt: permanentDeletionAt(config, deletedAt).toISOString() }, endCookies(config, call));
  },
});

/**
 * Asks everybody who may object.
 * @throws ApiError DELETION_BLOCKED with all reasons: those who could not be heard change nothing about them; else DELETION_CHECK_UNAVAILABLE
 */
async function demandConsent({ deletionValidators }: DeletionNeeds, { id, email }: Owner): Promise<void> {
  const { reasons, unavailable } = await deletionValidators.ask({ userId: id, email });
  if (reasons.length > 0) throw new ApiError('DELETION_BLOCKED', { reasons });
  if (unavailable.length > 0) throw new ApiError('DELETION_CHECK_UNAVAILABLE', { retryAfter: 1 });
}

/** Everything that a deletion changes, in one transaction; null when the account is not active any more. */
function softDelete({ config, keyring, mysql }: DeletionNeeds, call: UserCall, owner: Owner): Promise<Date | null> {
  const { id, email } = owner;
  return mysql.transaction(async (tx) => {
    const deletedAt = await markDeleted(tx, id);
    if (!deletedAt) return null;
    const until = permanentDeletionAt(config, deletedAt).toISOString();
    await revokeAll(tx, id, 'deletion');
    await deleteMfaTokens(tx, id);
    await deleteTokens(tx, id);
    await record(tx, { userId: id, subject: subjectOf(keyring, id), action: 'account.deleted', status: 'success', ...whence(call) });
    await appendEvent(tx, 'identity.user.deleted', { userId: id, email, gracePeriodDays: config.graceDays, permanentDeletionAt: until }, deletedAt);
    await tell(tx, { keyring }, owner, verifiedContacts(owner), 'account_deleted', { gracePeriodDays: config.graceDays, restorableUntil: until });
    return deletedAt;
  });
}
