import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { empty, type UserCall } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { givenPassword, newPassword } from '../passwords/length.js';
import { deleteTokensFor } from '../store/account-tokens.js';
import { record, whence } from '../store/audit.js';
import { findOwner } from '../store/deletions.js';
import type { LoginAccount } from '../store/login-accounts.js';
import { deleteMfaTokens } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { appendEvent } from '../store/outbox.js';
import { revokeOthers } from '../store/sessions.js';
import { holdActive, setPasswordHash } from '../store/users.js';
import { demandRoom, enter, fail, releaseOnThrow, type Attempt, type AttemptNeeds } from './attempt.js';
import type { Ticket } from './gate.js';
import { sourceOf } from './identity.js';

export type PasswordChangeNeeds = AttemptNeeds & Pick<Deps, 'hashing' | 'passwordRules' | 'events' | 'notify'>;

/** POST /api/auth/password/change: the current password, which passes the login gate, sets a new one and ends the other sessions. */
export const changePassword = userEndpoint({
  tag: 'Password',
  summary: 'Change the password',
  description: 'Ends the other sessions. A wrong current password counts in the login gate, like one at a login.',
  body: Type.Object({ currentPassword: givenPassword, newPassword }),
  replies: { 204: null },
  errors: ['PASSWORD_TOO_WEAK', 'INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED', 'OVERLOADED'],
  handle: async (needs: PasswordChangeNeeds, call) => {
    const { hashing, passwordRules } = needs;
    demandRoom(needs, call);
    const attempt = await begin(needs, call);
    await passwordRules.demand(call.body.newPassword, attempt.email, '/newPassword');
    const ticket = await enter(needs, attempt);
    const settle = settleOnce(needs, ticket);
    for (let account: LoginAccount | null = attempt.account; ; account = await attempt.reread()) {
      const hash = account?.passwordHash ?? null;
      const isChanged = await releaseOnThrow(needs, ticket, async () => {
        if (!(await hashing.verify(hash, call.body.currentPassword, call)).ok) return null;
        const renewed = await hashing.hash(call.body.newPassword, call);
        return change(needs, call, { id: account!.id, from: hash!, to: renewed }, () => settle(account!));
      });
      if (isChanged === null) return fail(needs, { ...attempt, account }, ticket, 'INVALID_CREDENTIALS');
      if (!isChanged) continue;
      finish(needs, call);
      return empty();
    }
  },
});

async function begin({ accountOf, keyring }: PasswordChangeNeeds, call: UserCall): Promise<Attempt> {
  const source = sourceOf(keyring, call);
  const reread = (): Promise<LoginAccount | null> => accountOf({ by: 'id', value: call.principal.userId, source });
  const account = await reread();
  // The account went between the two reads.
  if (!account) throw new ApiError('UNAUTHENTICATED');
  return { email: account.email, account, source, reread, call, action: 'password.changed' };
}

/** Settles the ticket for a right password; once, however often the transaction around it is tried. */
function settleOnce({ gate }: PasswordChangeNeeds, ticket: Ticket): (account: LoginAccount) => Promise<void> {
  let settled: Promise<void> | null = null;
  // With a second factor the password alone clears nothing, as at login: else whoever has it could guess codes without end.
  return (account) => (settled ??= account.factors.length > 0 ? gate.release(ticket) : gate.succeed(ticket));
}

/**
 * Everything that a change changes, in one transaction; false when the account got another password since it was read.
 * @throws ApiError UNAUTHENTICATED when the account, and so the session, ended
 */
function change({ keyring, mysql }: PasswordChangeNeeds, call: UserCall, { id, from, to }: { id: string; from: string; to: string }, settle: () => Promise<void>): Promise<boolean> {
  return mysql.transaction(async (tx) => {
    const account = await holdActive(tx, id);
    if (!account) throw new ApiError('UNAUTHENTICATED');
    if (account.passwordHash !== from) return false;
    // A lock that fell meanwhile refuses here, before anything is kept.
    await settle();
    await setPasswordHash(tx, id, to);
    await revokeOthers(tx, id, call.principal.sessionId, 'password_change');
    // A login that waits for its second factor began with the old password.
    await deleteMfaTokens(tx, id);
    await deleteTokensFor(tx, id, 'reset_password');
    await record(tx, { userId: id, subject: subjectOf(keyring, id), action: 'password.changed', status: 'success', ...whence(call) });
    await appendEvent(tx, 'identity.user.password_changed', { userId: id, email: account.email, by: 'change' }, account.now);
    await tellOwner(tx, keyring, id);
    return true;
  });
}

async function tellOwner(tx: Tx, keyring: Deps['keyring'], id: string): Promise<void> {
  const owner = (await findOwner(tx, id))!;
  await tell(tx, { keyring }, owner, verifiedContacts(owner), 'password_changed', {});
}

function finish({ keyring, log, events, notify }: PasswordChangeNeeds, call: UserCall): void {
  events.wake();
  notify.wake();
  log.info({ requestId: call.requestId, action: 'password.changed', subject: subjectOf(keyring, call.principal.userId), ip: call.ip }, 'password changed');
}
