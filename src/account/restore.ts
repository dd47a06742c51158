import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';
import { ApiError } from '../errors.js';
import { json, type Call } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { time } from '../http/fields.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts, type Contact } from '../notify/notices.js';
import { deleteTokens } from '../store/account-tokens.js';
import { record, whence } from '../store/audit.js';
import { findOwnerByEmail, markRestored, type Owner, type Restored } from '../store/deletions.js';
import { deleteMfaTokens } from '../store/mfa.js';
import { appendEvent } from '../store/outbox.js';
import { revokeAll } from '../store/sessions.js';
import { audited } from './audited.js';
import { claimCode, giveBackOnThrow } from './otp.js';

export type RestoreNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'scripts' | 'events' | 'notify'>;

const body = Type.Object({
  email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.org'] }),
  otp: Type.String({ minLength: 1, maxLength: 64, description: 'The code that restore-request sent.', examples: ['12345678'] }),
});

/** POST …/account/restore: undoes a deletion within the grace period. Signs nobody in: ended sessions stay ended. */
export const restore = endpoint({
  tag: 'Account',
  summary: 'Restore a deleted account',
  description: 'Signs nobody in: the sessions that the deletion ended stay ended.',
  body,
  replies: { 200: Type.Object({ restoredAt: time() }, { title: 'Restoration', description: 'The account is as it was, without its sessions.' }) },
  errors: ['OTP_INVALID', 'OTP_LOCKED', 'RESTORE_EXPIRED'],
  handle: async (needs: RestoreNeeds, call) => {
    const { keyring, log, mysql } = needs;
    const email = normaliseEmail(call.body.email);
    const owner = await findOwnerByEmail(mysql, email);
    const subject = owner ? subjectOf(keyring, owner.id) : keyring.mac('subject', email).toString('base64url');

    const restoredAt = await audited(needs, { userId: owner?.id ?? null, subject, action: 'account.restored', ...whence(call) }, async () => {
      const claim = await claimCode(needs, owner ?? { id: null, email }, 'restore', call.body.otp);
      const outcome = await giveBackOnThrow(claim, async () => {
        const restored = owner ? await undelete(needs, call, owner) : { kind: 'not-deleted' as const };
        // Nothing was done with the code.
        if (restored.kind === 'expired') throw new ApiError('RESTORE_EXPIRED');
        return restored;
      });
      await claim.spend();
      if (outcome.kind !== 'restored') throw new ApiError('OTP_INVALID');
      return outcome.restoredAt;
    });
    needs.events.wake();
    needs.notify.wake();
    log.info({ requestId: call.requestId, action: 'account.restored', subject, ip: call.ip }, 'account restored');
    return json(200, { restoredAt: restoredAt.toISOString() });
  },
});

/** Everything that a restore changes, in one transaction. */
function undelete({ config, keyring, mysql }: RestoreNeeds, call: Call, owner: Owner): Promise<Restored> {
  const { id, email } = owner;
  return mysql.transaction(async (tx) => {
    const restored = await markRestored(tx, id, config.graceDays);
    if (restored.kind !== 'restored') return restored;
    // A login that was under way during the deletion may have left a session.
    await revokeAll(tx, id, 'deletion');
    await deleteMfaTokens(tx, id);
    await deleteTokens(tx, id);
    await record(tx, { userId: id, subject: subjectOf(keyring, id), action: 'account.restored', status: 'success', ...whence(call) });
    await appendEvent(tx, 'identity.user.restored', { userId: id, email, originalDeletionAt: restored.deletedAt.toISOString() }, restored.restoredAt);
    await tell(tx, { keyring }, owner, contactsOf(owner), 'account_restored', {});
    return restored;
  });
}

/** The code came by mail, so the address is the owner's, verified before or not. */
const contactsOf = (owner: Owner): Contact[] => [{ channel: 'EMAIL', to: owner.email }, ...verifiedContacts(owner).filter(({ channel }) => channel !== 'EMAIL')];
