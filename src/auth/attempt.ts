import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import type { Call } from '../http/call.js';
import { subjectOf } from '../keyring.js';
import { record, whence, type AuditEntry } from '../store/audit.js';
import { dropLapsedStrangers, lockByGate, lockSource, lockStranger } from '../store/gate-locks.js';
import type { LoginAccount, LoginQuery, Seen, Source } from '../store/login-accounts.js';
import type { Gate, Penalty, StoredLock, Ticket } from './gate.js';
import { identityHash, identityOf, sourceName } from './identity.js';
import { tellOfLock } from './lock-notice.js';

/** The reply to a failure that locks is held for so long: where the lock is written down differs, and time must not tell. */
const LOCKING_MS = 100;

/** Refusals leave at ticks of their call's own clock: what the look-up of a known account takes longer must not show. */
const TICK_MS = 25;
const nextTick = (call: Call, moment: number): number => call.receivedAt + Math.ceil((moment - call.receivedAt) / TICK_MS) * TICK_MS;

export type AttemptNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'metrics' | 'mysql' | 'clock' | 'heldReplies'> & {
  gate: Gate;
  /** Finds an account, together with those of other logins. */
  accountOf: (query: LoginQuery) => Promise<LoginAccount | null>;
};

/** One try to prove who somebody is, by password, second factor or another provider: all pass the same gate. */
export interface Attempt {
  /** The address as it is compared; the one stored when an account is known. */
  email: string;
  account: LoginAccount | null;
  /** The lock of the address, as long as no account is known. */
  stranger?: Seen['stranger'];
  source: Source;
  /** Finds the account again, to see a lock that was cleared or set meanwhile. */
  reread: () => Promise<LoginAccount | null>;
  call: Call;
  action: AuditEntry['action'];
  /** Facts that each of its audit entries carries. */
  detail?: Record<string, unknown>;
}

type RoomNeeds = Pick<Deps, 'hashing' | 'metrics'>;

/**
 * Refuses a login that the hashing threads could not take in time, before anything is spent on it.
 * @throws ApiError OVERLOADED
 */
export const demandRoom = ({ hashing, metrics }: RoomNeeds, call: Call): void => counted(metrics, () => hashing.demand(call));

/**
 * Refuses it too, or keeps a place for it.
 * @throws ApiError OVERLOADED
 */
export const takeRoom = ({ hashing, metrics }: RoomNeeds, call: Call): void => counted(metrics, () => hashing.admit(call));

function counted(metrics: Deps['metrics'], work: () => void): void {
  try {
    work();
  } catch (error) {
    countRefusal(metrics, error);
    throw error;
  }
}

/**
 * Takes a ticket of the gate.
 * @throws ApiError ACCOUNT_LOCKED, LOGIN_THROTTLED, UNAVAILABLE
 */
export async function enter({ config, keyring, gate, metrics, heldReplies }: AttemptNeeds, { account, stranger, email, source, reread, call }: Attempt): Promise<Ticket> {
  const isFamiliar = config.lockoutFamiliarSources && account?.familiar === true;
  const bucket = { identity: identityOf(keyring, email), source: isFamiliar ? sourceName(source) : null };
  const stored = account ? storedLock(account, isFamiliar) : (stranger ?? { ms: 0 });
  try {
    return await gate.enter(bucket, { ...stored, stands: async () => lockStands(await reread()) });
  } catch (error) {
    countRefusal(metrics, error);
    await heldReplies.hold(nextTick(call, performance.now()), call.gone);
    throw error;
  }
}

/**
 * Takes a ticket of the gate for an attempt that `takeRoom` let in: when the gate refuses it, its place goes to others.
 * @throws ApiError ACCOUNT_LOCKED, LOGIN_THROTTLED, UNAVAILABLE
 */
export async function enterWithRoom(needs: AttemptNeeds & Pick<Deps, 'hashing'>, attempt: Attempt): Promise<Ticket> {
  try {
    return await enter(needs, attempt);
  } catch (error) {
    needs.hashing.dismiss(attempt.call);
    throw error;
  }
}

/** A lock of the gate spares familiar sources, which have locks of their own; an operator's lock spares nobody. */
function storedLock(account: LoginAccount, isFamiliar: boolean): Omit<StoredLock, 'stands'> {
  if (isFamiliar && account.lockedByGate) return { ms: account.sourceLockMs, memory: account.sourceLockMemory };
  return { ms: account.lockMs, memory: account.lockMemory };
}

/** A lock that has just run out in MySQL still stands as far as Redis says: only an operator lifts one early. */
const lockStands = (account: LoginAccount | null): boolean => account === null || account.lockMs > 0 || account.lockedByGate;

type Wrong = 'INVALID_CREDENTIALS' | 'MFA_INVALID';

/**
 * Counts a wrong guess, writes its lock through to MySQL and holds the reply.
 * @throws ApiError `code`, always, after the delay that the failure earned
 */
export async function fail(needs: AttemptNeeds, attempt: Attempt, ticket: Ticket, code: Wrong): Promise<never> {
  const { gate, mysql, keyring, log, metrics, heldReplies } = needs;
  const { call } = attempt;
  const penalty = await gate.fail(ticket);
  // The delay in Redis runs from here: a reply held from any earlier moment would invite a try that is still throttled.
  const failedAt = performance.now();
  const refusal = new ApiError(code);
  countRefusal(metrics, refusal);
  const lockMs = Math.max(penalty.ownLockMs, penalty.allLockMs);
  if (lockMs > 0) await writeLock(needs, attempt, ticket, penalty, code);
  const locked = penalty.ownLockMs > 0;
  await record(mysql, { ...auditOf(keyring, attempt), status: 'failure', detail: { ...attempt.detail, outcome: code, locked } });
  log.info({ requestId: call.requestId, action: attempt.action, outcome: code, locked, ip: call.ip }, 'attempt refused');
  const holdMs = Math.max(penalty.delayMs, lockMs > 0 ? LOCKING_MS : 0);
  await heldReplies.hold(nextTick(call, failedAt + holdMs), call.gone);
  throw refusal;
}

/** Writes what was locked down in MySQL, where it outlives Redis, and a message to the owner with it. */
async function writeLock(needs: AttemptNeeds, { account, email, source, call }: Attempt, ticket: Ticket, { ownLockMs, ownStep, allLockMs, allStep }: Penalty, code: Wrong): Promise<void> {
  const { gate, mysql, keyring, log } = needs;
  if (account) {
    const ms = Math.max(ownLockMs, allLockMs);
    await mysql.transaction(async (tx) => {
      // For a familiar source's lock too: users.locked_until is where operators see a lock and lift it.
      const isNew = await lockByGate(tx, account.id, { ms, step: allStep });
      if (ownLockMs > 0 && ticket.bucket.source !== null) await lockSource(tx, account.id, source, { ms: ownLockMs, step: ownStep });
      if (isNew) await tellOfLock(tx, needs, call, account.id, { ms, guessed: code === 'MFA_INVALID' ? 'code' : 'password' });
    });
  } else {
    await lockStranger(mysql, identityHash(keyring, email), { ms: allLockMs, step: allStep });
    await dropLapsedStrangers(mysql).catch((error: unknown) => log.debug({ err: error }, 'lapsed locks stay for now'));
  }
  await gate.recorded(ticket.bucket);
}

/** Gives the ticket back when the work ends in an error that says nothing about the guess. */
export async function releaseOnThrow<T>({ gate, log, metrics }: Pick<AttemptNeeds, 'gate' | 'log' | 'metrics'>, ticket: Ticket, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    countRefusal(metrics, error);
    await gate.release(ticket).catch((late: unknown) => log.warn({ err: late }, 'a ticket of the login gate lapses by itself'));
    throw error;
  }
}

function countRefusal(metrics: Deps['metrics'], error: unknown): void {
  if (error instanceof ApiError) metrics.logins.inc({ outcome: error.code.toLowerCase() });
}

/** The audit columns that every entry of an attempt shares. */
export function auditOf(keyring: Deps['keyring'], { account, email, call, action }: Attempt): Pick<AuditEntry, 'userId' | 'subject' | 'action' | 'ip' | 'country' | 'sessionId'> {
  const subject = account ? subjectOf(keyring, account.id) : keyring.mac('subject', email).toString('base64url');
  return { userId: account?.id ?? null, subject, action, ...whence(call) };
}
