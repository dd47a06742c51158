import type { Static } from '@sinclair/typebox';
import type { SigningJob } from '../../workers/protocol.js';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { permanentDeletionAt } from '../grace.js';
import type { Reply } from '../http/call.js';
import type { Tx } from '../store/mysql.js';
import type { LoginAccount } from '../store/login-accounts.js';
import { accessTokenJob } from './access-token.js';
import { auditOf, type Attempt, type AttemptNeeds } from './attempt.js';
import type { Ticket } from './gate.js';
import type { Opened, Opening } from './opening.js';
import { risksOf } from './risk.js';
import { deliver, lifetimes, newSessionMs, type Delivered, type Draft, type Tokens } from './session.js';

export type SignInNeeds = AttemptNeeds & Pick<Deps, 'clock' | 'signing' | 'signingKeys'> & { openSession: (opening: Opening) => Promise<Opened> };

/**
 * Whether a right password is of no use: the account is deleted or disabled.
 * @throws ApiError ACCOUNT_DELETED with permanentDeletionAt, ACCOUNT_INACTIVE
 */
export function demandUsable(account: Pick<LoginAccount, 'deletedAt' | 'status'>, config: Deps['config']): void {
  if (account.deletedAt) {
    throw new ApiError('ACCOUNT_DELETED', { permanentDeletionAt: permanentDeletionAt(config, account.deletedAt).toISOString() });
  }
  if (account.status !== 'active') throw new ApiError('ACCOUNT_INACTIVE');
}

/** What has to be signed for the session of a draft. */
export function draftJob(needs: Pick<Deps, 'config' | 'clock' | 'signingKeys'>, account: LoginAccount, draft: Draft): SigningJob {
  const { refresh, amr } = draft;
  const { expiresIn } = lifetimes(needs.config, newSessionMs(needs.config, draft));
  return accessTokenJob(needs, { userId: account.id, sessionId: refresh.sessionId, roles: account.roles, amr, authTime: new Date(needs.clock.now()), expiresIn });
}

/** What a proven login opens. */
export interface Proven {
  draft: Draft;
  /** Gives the signed access token of the draft; asked once the session stands. */
  accessToken: () => Promise<string>;
  deviceName?: string | undefined;
  /** What else belongs into the transaction; a throw gives the attempt up. */
  also?: (tx: Tx) => Promise<void>;
}

/**
 * Opens a session for a proven account and delivers its tokens in the way that the client asked for.
 * @returns null when the account changed while it was proven: nothing is kept, and it must be proven anew
 * @throws ApiError ACCOUNT_LOCKED, LOGIN_THROTTLED when a lock fell meanwhile: then nothing is kept either
 */
export async function signIn(needs: SignInNeeds, attempt: Attempt & { account: LoginAccount }, ticket: Ticket, proven: Proven): Promise<Reply<200, Static<typeof Delivered>> | null> {
  const tokens = await enterSession(needs, attempt, ticket, proven);
  return tokens && deliver(needs, attempt.call, tokens);
}

/** The same without the delivery. Every id, secret and XSRF value is new: nothing that the client sent is carried over. */
export async function enterSession(needs: SignInNeeds, attempt: Attempt & { account: LoginAccount }, ticket: Ticket, proven: Proven): Promise<Tokens | null> {
  const { config, keyring, log, metrics } = needs;
  const { account, call } = attempt;
  const { draft, accessToken, deviceName, also } = proven;
  const risks = risksOf(account, call.place);
  const opened = await needs.openSession({ attempt, ticket, draft, deviceName, risks, ...(also ? { also } : {}) });
  if (opened.kind === 'changed') return null;
  if (opened.kind === 'refused') throw opened.error;
  metrics.logins.inc({ outcome: 'success' });
  log.info({ requestId: call.requestId, action: attempt.action, outcome: 'success', subject: auditOf(keyring, attempt).subject, ip: call.ip, country: call.place?.country ?? null, risks }, 'signed in');
  return { accessToken: await accessToken(), refresh: draft.refresh, ...lifetimes(config, newSessionMs(config, draft)) };
}
