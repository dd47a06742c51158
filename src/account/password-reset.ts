import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';
import { ApiError } from '../errors.js';
import { empty, type Call } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { newPassword } from '../passwords/length.js';
import { deleteTokens, findToken, spendToken } from '../store/account-tokens.js';
import { clearLocksOf } from '../store/accounts.js';
import { record, whence } from '../store/audit.js';
import { findOwner, findOwnerByEmail } from '../store/deletions.js';
import { deleteMfaTokens } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { appendEvent } from '../store/outbox.js';
import { revokeAll } from '../store/sessions.js';
import { holdActive, setPasswordHash, type HeldAccount } from '../store/users.js';
import { noteVerified } from './email-verification.js';
import { hashOfToken, mailedToken, mailToken } from './mailed-token.js';
import { demandStores, doUnseen, type UnseenNeeds } from './unseen.js';

type ForgotNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'clock' | 'notify'>;
export type ResetNeeds = Pick<Deps, 'keyring' | 'log' | 'mysql' | 'redis' | 'hashing' | 'passwordRules' | 'events' | 'notify'> & {
  /** Has the login gate forget every failure and lock of an account. */
  forgetFailures: (account: { id: string; email: string }) => Promise<void>;
};
export type PasswordResetNeeds = ForgotNeeds & ResetNeeds & UnseenNeeds;

/** POST /api/auth/password/forgot: mails a reset token to an active account. The reply is the same for any address. */
export const forgotPassword = endpoint({
  tag: 'Password',
  summary: 'Ask for a token that sets a new password',
  description: 'The same reply at the same time for every address.',
  body: Type.Object({ email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.org'] }) }),
  replies: { 204: null },
  errors: [],
  handle: async (needs: ForgotNeeds & UnseenNeeds, call) => {
    const email = normaliseEmail(call.body.email);
    await demandStores(needs);
    await doUnseen(needs, 'password-forgot-address', email, () => sendToken(needs, email, call));
    return empty();
  },
});

async function sendToken(needs: ForgotNeeds, email: string, call: Call): Promise<void> {
  const { keyring, log, mysql, notify } = needs;
  const owner = await findOwnerByEmail(mysql, email);
  if (!owner) return;
  const subject = subjectOf(keyring, owner.id);
  const isSent = await mysql.transaction(async (tx) => {
    if (!(await holdActive(tx, owner.id))) return false;
    await mailToken(tx, needs, owner, 'reset_password');
    await record(tx, { userId: owner.id, subject, action: 'password.reset_requested', status: 'success', ...whence(call) });
    return true;
  });
  if (!isSent) return;
  notify.wake();
  log.info({ requestId: call.requestId, action: 'password.reset_requested', subject, ip: call.ip }, 'token for a new password mailed');
}

/**
 * POST /api/auth/password/reset: the token of the newest reset mail sets a new password. Ends every session and every
 * lock, and signs nobody in: the next login asks for the second factor as before.
 */
export const resetPassword = endpoint({
  tag: 'Password',
  summary: 'Set a new password by the token that was mailed',
  description: 'Ends every session and clears the lock of the account. The next login asks for the second factor as before.',
  body: Type.Object({ token: mailedToken, password: newPassword }),
  replies: { 204: null },
  errors: ['TOKEN_INVALID', 'PASSWORD_TOO_WEAK', 'OVERLOADED'],
  handle: async (needs: ResetNeeds, call) => {
    const { keyring, log, mysql, hashing, passwordRules, events, notify } = needs;
    // The gate is to forget the failures: as long as it cannot, the token is not used up.
    await demandStores(needs);
    const hash = hashOfToken(call.body.token);
    const token = await findToken(mysql, hash, 'reset_password');
    if (!token) throw new ApiError('TOKEN_INVALID');
    await passwordRules.demand(call.body.password, token.email, '/password');
    const passwordHash = await hashing.hash(call.body.password, call);
    const spent = await mysql.transaction(async (tx) => {
      const account = await holdActive(tx, token.userId);
      if (!account || !(await spendToken(tx, hash, 'reset_password'))) return false;
      await renew(tx, needs, { ...account, id: token.userId }, passwordHash, call);
      return true;
    });
    if (!spent) throw new ApiError('TOKEN_INVALID');
    const subject = subjectOf(keyring, token.userId);
    // The locks are gone from MySQL already, and the gate asks there: what it counted beside them is all that would stay.
    await needs.forgetFailures({ id: token.userId, email: token.email }).catch((error: unknown) => log.warn({ err: error, subject }, 'failures counted before a password reset stay counted'));
    events.wake();
    notify.wake();
    log.info({ requestId: call.requestId, action: 'password.reset', subject, ip: call.ip }, 'password reset');
    return empty();
  },
});

/** Everything that a reset changes beside the token. */
async function renew(tx: Tx, needs: ResetNeeds, account: HeldAccount & { id: string }, passwordHash: string, call: Call): Promise<void> {
  const { id, email, now } = account;
  await setPasswordHash(tx, id, passwordHash);
  await clearLocksOf(tx, id);
  await revokeAll(tx, id, 'password_change');
  // A login that waits for its second factor began with the old password.
  await deleteMfaTokens(tx, id);
  await deleteTokens(tx, id);
  // The token came by mail.
  await noteVerified(tx, needs, id, account, call);
  await record(tx, { userId: id, subject: subjectOf(needs.keyring, id), action: 'password.reset', status: 'success', ...whence(call) });
  await appendEvent(tx, 'identity.user.password_changed', { userId: id, email, by: 'reset' }, now);
  const owner = (await findOwner(tx, id))!;
  await tell(tx, needs, owner, verifiedContacts(owner), 'password_changed', {});
}
