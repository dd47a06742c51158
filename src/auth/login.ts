import { Type, type Static } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';
import { endpoint } from '../http/endpoint.js';
import { json, type Call, type Reply } from '../http/call.js';
import { seconds } from '../http/fields.js';
import type { Tx } from '../store/mysql.js';
import { renewPasswordHash, type LoginAccount, type LoginQuery, type Seen } from '../store/login-accounts.js';
import { demandRoom, enterWithRoom, fail, releaseOnThrow, takeRoom, type Attempt } from './attempt.js';
import { challenge } from './challenge.js';
import { identityHash, sourceOf } from './identity.js';
import type { Ticket } from './gate.js';
import { MFA_TOKEN_MS } from './mfa-token.js';
import { Delivered, draftSession, type Draft } from './session.js';
import { demandUsable, draftJob, signIn, type SignInNeeds } from './sign-in.js';

export type LoginNeeds = SignInNeeds &
  Pick<Deps, 'hashing'> & {
    /** Finds what is known of an address, together with those of other logins. */
    lookUp: (query: LoginQuery) => Promise<Seen>;
  };

const body = Type.Object({
  email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.org'] }),
  password: Type.String({ minLength: 1, examples: ['correct horse battery staple'] }),
  deviceName: Type.Optional(Type.String({ maxLength: 255, description: 'What the list of sessions calls this device; else the User-Agent.', examples: ['Ada’s laptop'] })),
});

const Challenge = Type.Object(
  {
    mfaRequired: Type.Literal(true),
    mfaToken: Type.String({ description: 'Names this login towards verify-login.', examples: ['3y3X5hYw0m8m0jvXQy1l8j0H1r0v4S3y0h2s5m7n9p1'] }),
    methods: Type.Array(Type.Union([Type.Literal('totp'), Type.Literal('recovery_code')])),
    expiresIn: seconds('Life of mfaToken, in seconds.', MFA_TOKEN_MS / 1000),
  },
  { title: 'MfaChallenge', description: 'The password is right and a second factor is due. The same in both modes; no cookie is set.' },
);
const SignedIn = Type.Union([...Delivered.anyOf, Challenge], { description: 'Tokens, in the way that the client asked for; or the second factor is due.' });
type SignedIn = Reply<200, Static<typeof SignedIn>>;

/** POST /api/auth/login: e-mail and password for tokens, or for a challenge when a second factor is due. */
export const login = endpoint({
  tag: 'Signing in',
  summary: 'Sign in with e-mail address and password',
  description: 'Failed attempts are answered late, and lock the account in the end. A wrong password gets the same reply whatever the address is: unknown, deleted, disabled or in use.',
  body,
  replies: { 200: SignedIn },
  errors: ['INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED', 'ACCOUNT_DELETED', 'ACCOUNT_INACTIVE', 'OVERLOADED'],
  before: demandRoom,
  handle: async (needs: LoginNeeds, call) => {
    const { email, password, deviceName } = call.body;
    takeRoom(needs, call);
    const attempt = await begin(needs, call, email);
    const ticket = await enterWithRoom(needs, attempt);
    for (let { account } = attempt; ; account = await attempt.reread()) {
      // Chosen beforehand, so that the thread which finds the password right can sign at once.
      const draft = account && draftSession(needs.keyring, account.id, ['pwd']);
      const checked = await releaseOnThrow(needs, ticket, async () => {
        const job = draft && mayEnter(account!) ? draftJob(needs, account!, draft) : null;
        const verdict = await needs.hashing.verify(account?.passwordHash ?? null, password, call, job);
        if (verdict.ok && account) demandUsable(account, needs.config);
        return verdict;
      });
      if (!checked.ok || !account || !draft) return fail(needs, { ...attempt, account }, ticket, 'INVALID_CREDENTIALS');
      const known = { ...attempt, account };
      const reply = await releaseOnThrow(needs, ticket, () => proceed(needs, known, ticket, checked, draft, deviceName));
      if (reply) return reply;
    }
  },
});

/** Whether a right password alone opens a session. */
const mayEnter = ({ factors, deletedAt, status }: LoginAccount): boolean => factors.length === 0 && deletedAt === null && status === 'active';

async function begin({ lookUp, keyring }: LoginNeeds, call: Call, given: string): Promise<Attempt> {
  const email = normaliseEmail(given);
  const query: LoginQuery = { by: 'email', value: email, identity: identityHash(keyring, email), source: sourceOf(keyring, call) };
  const reread = async (): Promise<LoginAccount | null> => (await lookUp(query)).account;
  return { email, ...(await lookUp(query)), source: query.source, reread, call, action: 'login' };
}

type Known = Attempt & { account: LoginAccount };

/** What a right password leads to; null when the account changed while it was checked, so that it must be checked anew. */
async function proceed(needs: LoginNeeds, attempt: Known, ticket: Ticket, { renewed, token }: { renewed: string | null; token: string | null }, draft: Draft, deviceName: string | undefined): Promise<SignedIn | null> {
  const { account } = attempt;
  if (token === null) {
    const due = await challenge(needs, attempt, ticket, { firstFactor: 'pwd', device: deviceName ?? null });
    return due && json(200, { mfaRequired: true, ...due });
  }
  const accessToken = (): Promise<string> => Promise.resolve(token);
  if (renewed === null) return signIn(needs, attempt, ticket, { draft, accessToken, deviceName });
  const also = (tx: Tx): Promise<void> => renewPasswordHash(tx, account.id, account.passwordHash!, renewed);
  return signIn(needs, { ...attempt, account: { ...account, passwordHash: renewed } }, ticket, { draft, accessToken, deviceName, also });
}
