import { Type } from '@sinclair/typebox';
import { endpoint } from '../http/endpoint.js';
import { json, type Call, type Reply } from '../http/call.js';
import { record } from '../store/audit.js';
import { insertMfaToken } from '../store/mfa.js';
import { findForLogin, renewPasswordHash, type LoginAccount } from '../store/users.js';
import { auditOf, enter, fail, releaseOnThrow, type Attempt } from './attempt.js';
import { sourceOf } from './identity.js';
import type { Ticket } from './gate.js';
import { MFA_TOKEN_MS, newMfaToken } from './mfa-token.js';
import { demandUsable, signIn, type SignInNeeds } from './sign-in.js';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';


export type LoginNeeds = SignInNeeds & Pick<Deps, 'hashing'>;

const body = Type.Object({
  email: Type.String({ minLength: 1, maxLength: 254 }),
  password: Type.String({ minLength: 1 }),
  deviceName: Type.Optional(Type.String({ maxLength: 255 })),
});

/** POST /api/auth/login: e-mail and password for tokens, or for a challenge when a second factor is due. */
export const login = endpoint({
  body,
  errors: ['INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED', 'ACCOUNT_DELETED', 'ACCOUNT_INACTIVE', 'OVERLOADED'],
  handle: async (needs: LoginNeeds, call): Promise<Reply> => {
    const attempt = await begin(needs, call, call.body.email);
    const ticket = await enter(needs, attempt);
    const checked = await releaseOnThrow(needs, ticket, async () => {
      const verdict = await needs.hashing.verify(attempt.account?.passwordHash ?? null, call.body.password, call);
      if (verdict.ok && attempt.account) demandUsable(attempt.account, needs.config);
      return verdict;
    });
    const { account } = attempt;
    if (!checked.ok || !account) return fail(needs, attempt, ticket, 'INVALID_CREDENTIALS');
    return releaseOnThrow(needs, ticket, async () => {
      if (account.factors.length > 0) return challenge(needs, { ...attempt, account }, ticket);
      return signIn(needs, { ...attempt, account }, ticket, ['pwd'], call.body.deviceName, async (tx) => {
        if (checked.renewed !== null) await renewPasswordHash(tx, account.id, account.passwordHash!, checked.renewed);
      });
    });
  },
});

async function begin({ mysql, keyring }: LoginNeeds, call: Call, given: string): Promise<Attempt> {
  const email = normaliseEmail(given);
  const source = sourceOf(keyring, call);
  const reread = (): Promise<LoginAccount | null> => findForLogin(mysql, email, source);
  return { email, account: await reread(), source, reread, call, action: 'login' };
}

/** The password was right and a second factor is due: no session yet, and the gate's counts stay. */
async function challenge(needs: LoginNeeds, attempt: Attempt & { account: LoginAccount }, ticket: Ticket): Promise<Reply> {
  const { mysql, keyring, gate, metrics } = needs;
  const token = newMfaToken();
  await mysql.transaction(async (tx) => {
    await insertMfaToken(tx, token.hash, attempt.account.id, MFA_TOKEN_MS);
    await record(tx, { ...auditOf(keyring, attempt), status: 'success', detail: { outcome: 'mfa_required' } });
  });
  await gate.release(ticket);
  metrics.logins.inc({ outcome: 'mfa_required' });
  return json(200, { mfaRequired: true, mfaToken: token.text, methods: attempt.account.factors, expiresIn: MFA_TOKEN_MS / 1000 });
}
