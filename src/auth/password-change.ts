import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { empty, type UserCall } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { givenPassword, newPassword } from '../passwords/length.js';
import { deleteTokensFor } from '../store/account-tokens.js';
import { record, whence } from '../store/audit.js';
import { findOwner } from '../store/deletions.js';
import { deleteMfaTokens } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { appendEvent } from '../store/outbox.js';
import { revokeOthers } from '../store/sessions.js';
import { setPasswordHash } from '../store/users.js';
import { prove, PROOF_ERRORS, type ProofNeeds } from './proof.js';

export type PasswordChangeNeeds = ProofNeeds & Pick<Deps, 'passwordRules' | 'clock' | 'events' | 'notify'>;

/** POST /api/auth/password/change: the current password sets a new one and ends the other sessions. */
export const changePassword = userEndpoint({
  tag: 'Password',
  summary: 'Change the password',
  description: 'Ends the other sessions. A wrong current password counts in the login gate, like one at a login.',
  body: Type.Object({ currentPassword: givenPassword, newPassword }),
  replies: { 204: null },
  errors: [...PROOF_ERRORS, 'PASSWORD_TOO_WEAK'],
  handle: async (needs: PasswordChangeNeeds, call) => {
    const { currentPassword, newPassword: wanted } = call.body;
    const prepare = async ({ email }: { email: string }): Promise<string> => {
      await needs.passwordRules.demand(wanted, email, '/newPassword');
      return needs.hashing.hash(wanted, call);
    };
    await prove(needs, call, { action: 'password.changed', password: currentPassword, code: false, prepare }, async (tx, { id, email }, hash) => {
      await change(tx, needs, call, { id, email, hash });
      return {};
    });
    finish(needs, call);
    return empty();
  },
});

/** Everything that a change changes. */
async function change(tx: Tx, { keyring, clock }: PasswordChangeNeeds, call: UserCall, { id, email, hash }: { id: string; email: string; hash: string }): Promise<void> {
  await setPasswordHash(tx, id, hash);
  await revokeOthers(tx, id, call.principal.sessionId, 'password_change');
  // A login that waits for its second factor began with the old password.
  await deleteMfaTokens(tx, id);
  await deleteTokensFor(tx, id, 'reset_password');
  await record(tx, { userId: id, subject: subjectOf(keyring, id), action: 'password.changed', status: 'success', ...whence(call) });
  await appendEvent(tx, 'identity.user.password_changed', { userId: id, email, by: 'change' }, new Date(clock.now()));
  const owner = (await findOwner(tx, id))!;
  await tell(tx, { keyring }, owner, verifiedContacts(owner), 'password_changed', {});
}

function finish({ keyring, log, events, notify }: PasswordChangeNeeds, call: UserCall): void {
  events.wake();
  notify.wake();
  log.info({ requestId: call.requestId, action: 'password.changed', subject: subjectOf(keyring, call.principal.userId), ip: call.ip }, 'password changed');
}
