import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';
import { ApiError } from '../errors.js';
import { empty, type Call } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { findToken, spendToken } from '../store/account-tokens.js';
import { record, whence } from '../store/audit.js';
import { findOwnerByEmail } from '../store/deletions.js';
import type { Tx } from '../store/mysql.js';
import { appendEvent } from '../store/outbox.js';
import { holdActive, markEmailVerified, type HeldAccount } from '../store/users.js';
import { hashOfToken, mailedToken, mailToken } from './mailed-token.js';
import { demandStores, doUnseen, type UnseenNeeds } from './unseen.js';

type SendNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'clock' | 'notify'>;
type VerifyNeeds = Pick<Deps, 'keyring' | 'log' | 'mysql' | 'events'>;
export type EmailVerificationNeeds = SendNeeds & VerifyNeeds & UnseenNeeds;

/** POST /api/auth/email/verify: the token of the newest verification mail proves the address. Signs nobody in. */
export const verifyEmail = endpoint({
  tag: 'Registration',
  summary: 'Prove an address by the token that was mailed to it',
  description: 'A token works once; the newest one mailed is the only good one.',
  body: Type.Object({ token: mailedToken }),
  replies: { 204: null },
  errors: ['TOKEN_INVALID'],
  handle: async (needs: VerifyNeeds, call) => {
    const { keyring, log, mysql, events } = needs;
    const hash = hashOfToken(call.body.token);
    const token = await findToken(mysql, hash, 'verify_email');
    const spent = token && (await mysql.transaction(async (tx) => {
      const account = await holdActive(tx, token.userId);
      if (!account || !(await spendToken(tx, hash, 'verify_email'))) return false;
      await noteVerified(tx, needs, token.userId, account, call);
      return true;
    }));
    if (!spent) throw new ApiError('TOKEN_INVALID');
    events.wake();
    log.info({ requestId: call.requestId, action: 'email.verified', subject: subjectOf(keyring, token.userId), ip: call.ip }, 'address verified');
    return empty();
  },
});

/** Notes in the transaction of the proof that the address is the owner's, if that is news. */
export async function noteVerified(tx: Tx, { keyring }: Pick<Deps, 'keyring'>, userId: string, { email, now }: HeldAccount, call: Parameters<typeof whence>[0]): Promise<void> {
  if (!(await markEmailVerified(tx, userId))) return;
  await record(tx, { userId, subject: subjectOf(keyring, userId), action: 'email.verified', status: 'success', ...whence(call) });
  await appendEvent(tx, 'identity.user.email_verified', { userId, email }, now);
}

/** POST /api/auth/email/resend: mails a new token to an account whose address is not proven. The reply is the same for any address. */
export const resendVerification = endpoint({
  tag: 'Registration',
  summary: 'Ask for a new token that proves an address',
  description: 'The same reply at the same time for every address.',
  body: Type.Object({ email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.org'] }) }),
  replies: { 204: null },
  errors: [],
  handle: async (needs: SendNeeds & UnseenNeeds, call) => {
    const email = normaliseEmail(call.body.email);
    await demandStores(needs);
    await doUnseen(needs, 'email-resend-address', email, () => resend(needs, email, call));
    return empty();
  },
});

async function resend(needs: SendNeeds, email: string, call: Call): Promise<void> {
  const { keyring, log, mysql, notify } = needs;
  const owner = await findOwnerByEmail(mysql, email);
  if (!owner || owner.emailVerified) return;
  const subject = subjectOf(keyring, owner.id);
  const isSent = await mysql.transaction(async (tx) => {
    const account = await holdActive(tx, owner.id);
    if (!account || account.emailVerified) return false;
    await mailToken(tx, needs, owner, 'verify_email');
    await record(tx, { userId: owner.id, subject, action: 'email.verification_requested', status: 'success', ...whence(call) });
    return true;
  });
  if (!isSent) return;
  notify.wake();
  log.info({ requestId: call.requestId, action: 'email.verification_requested', subject, ip: call.ip }, 'token to verify an address mailed');
}
