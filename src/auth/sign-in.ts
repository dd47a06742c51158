import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { permanentDeletionAt } from '../grace.js';
import type { Reply } from '../http/call.js';
import { record } from '../store/audit.js';
import type { Tx } from '../store/mysql.js';
import { rememberSource, type LoginAccount } from '../store/users.js';
import { auditOf, type Attempt, type AttemptNeeds } from './attempt.js';
import type { Ticket } from './gate.js';
import { deliver, draftSession, newSessionMs, signTokens, storeSession } from './session.js';

export type SignInNeeds = AttemptNeeds & Pick<Deps, 'clock' | 'signing' | 'signingKeys'>;

/**
 * Whether a right password is of no use: the account is deleted or disabled.
 * @throws ApiError ACCOUNT_DELETED with permanentDeletionAt, ACCOUNT_INACTIVE
 */
export function demandUsable(account: LoginAccount, config: Deps['config']): void {
  if (account.deletedAt) {
    throw new ApiError('ACCOUNT_DELETED', { permanentDeletionAt: permanentDeletionAt(config, account.deletedAt).toISOString() });
  }
  if (account.status !== 'active') throw new ApiError('ACCOUNT_INACTIVE');
}

/**
 * Opens a session for a proven account and delivers its tokens. Every id, secret and XSRF value is new:
 * nothing that the client sent is carried over.
 * @param also what else belongs into the transaction; a throw gives the attempt up
 * @throws ApiError ACCOUNT_LOCKED, LOGIN_THROTTLED when a lock fell while the proof was checked: then nothing is kept
 */
export async function signIn(needs: SignInNeeds, attempt: Attempt & { account: LoginAccount }, ticket: Ticket, amr: string[], deviceName: string | undefined, also: (tx: Tx) => Promise<void>): Promise<Reply> {
  const { config, keyring, mysql, gate, log, metrics } = needs;
  const { account, call, source } = attempt;
  const draft = draftSession(keyring, account.id, amr);
  const risks = risksOf(account);

  await mysql.transaction(async (tx) => {
    await also(tx);
    await storeSession(tx, config, draft, call, deviceName);
    await record(tx, { ...auditOf(keyring, attempt), status: 'success', ...(risks.length > 0 ? { detail: { risks } } : {}) });
    if (!account.remembered) await rememberSource(tx, account.id, source);
    // Last, so that no deadlock repeats it, and before the commit: a refused login must not make its source familiar.
    await gate.succeed(ticket);
  });
  const tokens = await signTokens(needs, { userId: account.id, amr, roles: account.roles, authTime: new Date(needs.clock.now()), refresh: draft.refresh, leftMs: newSessionMs(config) });
  metrics.logins.inc({ outcome: 'success' });
  log.info({ requestId: call.requestId, action: attempt.action, outcome: 'success', subject: auditOf(keyring, attempt).subject, ip: call.ip, risks }, 'signed in');
  return deliver(needs, call, tokens);
}

/** What is unusual about where a login comes from. A first login has nothing to differ from. */
function risksOf(account: LoginAccount): string[] {
  if (!account.seenBefore) return [];
  return [...(account.knownNetwork ? [] : ['new_network']), ...(account.knownDevice ? [] : ['new_device'])];
}
