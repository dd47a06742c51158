import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { endpoint } from '../http/endpoint.js';
import type { Call } from '../http/call.js';
import { sha256 } from '../keyring.js';
import { findMfaToken, spendMfaToken, type Method, type NewMfaToken } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { demandRedis } from '../store/redis.js';
import type { LoginAccount } from '../store/login-accounts.js';
import { lockActive } from '../store/users.js';
import { enter, fail, releaseOnThrow, type Attempt } from './attempt.js';
import { announce, wake, type NewsNeeds } from './factor-news.js';
import { spendCode } from './factor-use.js';
import { sourceOf } from './identity.js';
import { Delivered, draftSession } from './session.js';
import { demandUsable, draftJob, signIn, type SignInNeeds } from './sign-in.js';

export type VerifyNeeds = SignInNeeds & NewsNeeds & Pick<Deps, 'redis'>;

const body = Type.Object({
  mfaToken: Type.String({ minLength: 1, maxLength: 128, description: 'From the reply of the login.', examples: ['3y3X5hYw0m8m0jvXQy1l8j0H1r0v4S3y0h2s5m7n9p1'] }),
  method: Type.Union([Type.Literal('totp'), Type.Literal('recovery_code')]),
  code: Type.String({ minLength: 1, maxLength: 64, examples: ['123456'] }),
});

/** POST /api/auth/mfa/verify-login: the second factor of a login whose first was right. Failures count in the login gate. */
export const verifyLogin = endpoint({
  tag: 'Signing in',
  summary: 'Finish a login with the second factor',
  description: 'Each code is good for one login. Failures count like wrong passwords.',
  body,
  replies: { 200: Delivered },
  errors: ['MFA_TOKEN_INVALID', 'MFA_INVALID', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED', 'ACCOUNT_DELETED', 'ACCOUNT_INACTIVE'],
  handle: async (needs: VerifyNeeds, call) => {
    const { mfaToken, method, code } = call.body;
    const tokenHash = sha256(mfaToken);
    const attempt = await begin(needs, call, tokenHash, method);
    const ticket = await enter(needs, attempt);
    const { account } = attempt;
    const signedIn = await releaseOnThrow(needs, ticket, async () => {
      demandUsable(account, needs.config);
      const draft = draftSession(needs.keyring, account.id, [attempt.firstFactor, method === 'totp' ? 'otp' : 'recovery']);
      // A node that cannot sign now must say so before the code is spent.
      const job = draftJob(needs, account, draft);
      const accessToken = (): Promise<string> => needs.signing.sign(job);
      const also = async (tx: Tx): Promise<void> => {
        // The account's row first, like every change of factors: its events keep their order, and nobody waits in a circle.
        if (!(await lockActive(tx, account))) throw new ApiError('MFA_TOKEN_INVALID');
        if (!(await spendMfaToken(tx, tokenHash))) throw new ApiError('MFA_TOKEN_INVALID');
        // Rolls back, so that the token stays good for another try.
        if (!(await spendCode(tx, needs, account.id, method, code))) throw new WrongFactor();
        if (method === 'recovery_code') await announce(tx, needs, call, account.id, 'recoveryCodeUsed');
      };
      return signIn(needs, attempt, ticket, { draft, accessToken, deviceName: attempt.deviceName, also }).then(
        (opened) => {
          if (!opened) throw new ApiError('MFA_TOKEN_INVALID');
          return opened;
        },
        (error: unknown) => {
          if (error instanceof WrongFactor) return null;
          throw error;
        },
      );
    });
    if (!signedIn) return fail(needs, attempt, ticket, 'MFA_INVALID');
    if (method === 'recovery_code') wake(needs);
    return signedIn;
  },
});

class WrongFactor extends Error {}

type Begun = Attempt & { account: LoginAccount; deviceName: string | undefined } & Pick<NewMfaToken, 'firstFactor'>;

async function begin({ mysql, redis, accountOf, keyring }: VerifyNeeds, call: Call, tokenHash: Buffer, method: Method): Promise<Begun> {
  const source = sourceOf(keyring, call);
  const known = await findMfaToken(mysql, tokenHash);
  const reread = (): Promise<LoginAccount | null> => (known ? accountOf({ by: 'id', value: known.userId, source }) : Promise.resolve(null));
  const account = await reread();
  if (!known || !account) {
    // Fails closed like every other login while the gate cannot be asked.
    await demandRedis(redis, 'any');
    throw new ApiError('MFA_TOKEN_INVALID');
  }
  return { email: account.email, account, source, reread, call, action: 'mfa', firstFactor: known.firstFactor, deviceName: known.device ?? undefined, detail: { method, factors: account.factors.length } };
}
