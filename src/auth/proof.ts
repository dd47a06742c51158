import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import type { UserCall } from '../http/call.js';
import type { LoginAccount } from '../store/login-accounts.js';
import type { Tx } from '../store/mysql.js';
import { lockActive } from '../store/users.js';
import { enterWithRoom, fail, releaseOnThrow, takeRoom, type Attempt, type AttemptNeeds } from './attempt.js';
import type { Ticket } from './gate.js';
import { sourceOf } from './identity.js';

export type ProofNeeds = AttemptNeeds & Pick<Deps, 'hashing'>;

/** What a signed-in caller has to show once more. */
export interface Demand<Prepared = undefined> {
  /** What the proof is for, as the audit calls it. */
  action: Attempt['action'];
  /** The password that was sent, or null when none is asked for. */
  password: string | null;
  /** Whether `work` checks a second factor. */
  code: boolean;
  /** What takes long and must not hold the account's row; once the password is right, again if the account changed meanwhile. */
  prepare?: (account: LoginAccount) => Promise<Prepared>;
}

/** Codes that `prove` throws, beside those of `work`. */
export const PROOF_ERRORS = ['INVALID_CREDENTIALS', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED', 'OVERLOADED'] as const;
/** The same for callers whose password is not asked for, and who check a code. */
export const CODE_ERRORS = ['MFA_INVALID', 'ACCOUNT_LOCKED', 'LOGIN_THROTTLED'] as const;

type Work<T, Prepared> = (tx: Tx, account: LoginAccount, prepared: Prepared) => Promise<T | null>;
type Verdict<T> = { kind: 'done'; value: T } | { kind: 'changed' } | { kind: 'wrong'; code: 'INVALID_CREDENTIALS' | 'MFA_INVALID' };

/**
 * Has a signed-in caller prove again who they are, then does `work` in one transaction that holds the account's row.
 * Every guess passes the login gate, so that a stolen session is no way round the lock.
 * @param work gives null when the code that it checks is wrong; it may run again, so it touches nothing but `tx`
 * @throws ApiError UNAUTHENTICATED when the account ended meanwhile, those of the lists above, those of `work`
 */
export async function prove<T extends object, Prepared = undefined>(needs: ProofNeeds, call: UserCall, demand: Demand<Prepared>, work: Work<T, Prepared>): Promise<T> {
  if (demand.password !== null) takeRoom(needs, call);
  const attempt = await begin(needs, call, demand.action);
  const ticket = await enterWithRoom(needs, attempt);
  for (let { account } = attempt; ; account = await releaseOnThrow(needs, ticket, attempt.present)) {
    const verdict = await releaseOnThrow(needs, ticket, () => judge(needs, { ...attempt, account }, ticket, demand, work));
    if (verdict.kind === 'done') return verdict.value;
    if (verdict.kind === 'wrong') return fail(needs, { ...attempt, account }, ticket, verdict.code);
  }
}

type Known = Attempt & {
  account: LoginAccount;
  /** The account again, as long as it is active. */
  present: () => Promise<LoginAccount>;
};

async function begin({ accountOf, keyring }: ProofNeeds, call: UserCall, action: Attempt['action']): Promise<Known> {
  const source = sourceOf(keyring, call);
  const reread = (): Promise<LoginAccount | null> => accountOf({ by: 'id', value: call.principal.userId, source });
  const present = async (): Promise<LoginAccount> => {
    const account = await reread();
    if (account?.status !== 'active' || account.deletedAt !== null) throw new ApiError('UNAUTHENTICATED');
    return account;
  };
  const account = await present();
  return { email: account.email, account, source, reread, present, call, action };
}

/** `changed` when the account ended or its password changed since it was read: then it is read and asked anew. */
async function judge<T extends object, Prepared>(needs: ProofNeeds, { account, call }: Known, ticket: Ticket, { password, code, prepare }: Demand<Prepared>, work: Work<T, Prepared>): Promise<Verdict<T>> {
  if (password !== null) {
    const { ok } = await needs.hashing.verify(account.passwordHash, password, call);
    if (!ok) return { kind: 'wrong', code: 'INVALID_CREDENTIALS' };
  }
  const prepared = (await prepare?.(account)) as Prepared;
  // Only what a login would ask for clears the counts: else one factor would buy unlimited guesses at the other.
  const isWhole = password !== null && (code || account.factors.length === 0);
  let settled: Promise<void> | undefined;
  return needs.mysql.transaction(async (tx): Promise<Verdict<T>> => {
    if (!(await lockActive(tx, account))) return { kind: 'changed' };
    const value = await work(tx, account, prepared);
    if (value === null) return { kind: 'wrong', code: 'MFA_INVALID' };
    // Before the commit: what the gate refuses is not kept. Once, although the transaction may run again.
    settled ??= isWhole ? needs.gate.succeed(ticket) : needs.gate.release(ticket);
    await settled;
    return { kind: 'done', value };
  });
}
