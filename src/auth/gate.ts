import { v4 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import { ApiError, retrySeconds } from '../errors.js';
import { QUIET_DAYS } from '../store/login-accounts.js';
import { KEYS, reply } from '../store/redis.js';
import { createTurns, type Turns } from './turns.js';

type Needs = Pick<Deps, 'config' | 'scripts'>;

/** Whose attempts are counted: an account identity, seen from a familiar source (its name) or from anywhere else (null). */
export interface Bucket {
  identity: string;
  source: string | null;
}

/** The right to verify one guess. It must be settled. */
export interface Ticket {
  bucket: Bucket;
  id: string;
}

/** What MySQL knows of a lock: it outlives Redis, and operators change it by hand. */
export interface StoredLock {
  /** What is left of it, in ms; 0 for none. */
  ms: number;
  /** Which lock in a row the gate's own lock is, or was while its quiet time runs, and for how long that counts, in ms. */
  memory?: { step: number; keepMs: number };
  /** Reads it anew: false when it was lifted by hand rather than ran out. Unknown addresses read too, and get true. */
  stands: () => Promise<boolean>;
}

/** What a settled failure brought about, in ms. */
export interface Penalty {
  /** How long its reply is held. */
  delayMs: number;
  /** Lock of the familiar source's own bucket, and of the whole account; steps count locks in a row. */
  ownLockMs: number;
  ownStep: number;
  allLockMs: number;
  allStep: number;
}

/** The login gate: lockout and throttle, decided in Redis before a guess costs a hash. */
export interface Gate {
  /**
   * Takes a ticket, waiting in process while other attempts for the identity fill the slots.
   * @throws ApiError ACCOUNT_LOCKED, LOGIN_THROTTLED, UNAVAILABLE
   */
  enter(bucket: Bucket, stored: StoredLock): Promise<Ticket>;
  /** Gives the ticket back without counting or clearing. */
  release(ticket: Ticket): Promise<void>;
  /**
   * The guess was right: clears the counts.
   * @throws ApiError ACCOUNT_LOCKED when a lock fell meanwhile, LOGIN_THROTTLED when the ticket lapsed
   */
  succeed(ticket: Ticket): Promise<void>;
  /** The guess was wrong. */
  fail(ticket: Ticket): Promise<Penalty>;
  /** Notes that the locks of the bucket stand in MySQL. */
  recorded(bucket: Bucket): Promise<void>;
  /** Forgets everything counted for the bucket. */
  clear(bucket: Bucket): Promise<void>;
}

/** A ticket whose node died lapses after so long; an attempt never takes longer. */
const HOLD_MS = 30_000;
const QUIET_MS = QUIET_DAYS * 24 * 3600 * 1000;
/** How long a login waits for others of its account. */
const WAIT_MS = 5_000;
const POLL_MS = 15;

const lockedError = (ms: number): ApiError => new ApiError('ACCOUNT_LOCKED', { retryAfter: retrySeconds(ms) });
const throttledError = (ms: number): ApiError => new ApiError('LOGIN_THROTTLED', { retryAfter: retrySeconds(ms) });

export function createGate({ config, scripts }: Needs, redis: Pick<Deps['redis'], 'del'>): Gate {
  const turns: Turns = createTurns();
  const policy = {
    threshold: config.lockoutThreshold,
    quietMs: QUIET_MS,
    delaysMs: config.loginDelaysS.map((s) => s * 1000),
    locksMs: config.lockoutMinutes.map((minutes) => minutes * 60_000),
  };
  const keysOf = ({ identity, source }: Bucket): { bucket: string; held: string; all: string } => ({
    bucket: KEYS.gate(identity, source),
    held: KEYS.gateHeld(identity, source),
    all: KEYS.gate(identity, null),
  });
  const settle = (ticket: Ticket, outcome: 'release' | 'success' | 'failure') => scripts.loginSettle(keysOf(ticket.bucket), { ticket: ticket.id, outcome, ...policy });

  async function reserve(ticket: Ticket, stored: StoredLock): Promise<boolean> {
    const { bucket, held } = keysOf(ticket.bucket);
    const { step, keepMs } = stored.memory ?? { step: 0, keepMs: 0 };
    const verdict = await scripts.loginReserve({ bucket, held }, { ticket: ticket.id, threshold: policy.threshold, holdMs: HOLD_MS, storedMs: stored.ms, storedStep: keepMs > 0 ? step : 0, keepMs });
    if (verdict.outcome === 'throttled') throw throttledError(verdict.retryMs);
    if (verdict.outcome !== 'locked') return verdict.outcome === 'entered';
    // Read after the verdict, never before: an older answer could miss the lock that the verdict is about.
    // Read in any case: known and unknown addresses must not differ in time.
    const stands = await stored.stands();
    if (stands || !verdict.recorded) throw lockedError(verdict.retryMs);
    await clear(ticket.bucket);
    return reserve(ticket, { ms: 0, stands: () => Promise.resolve(true) });
  }

  async function clear(bucket: Bucket): Promise<void> {
    const { bucket: own, all } = keysOf(bucket);
    await reply(redis.del(own, all));
  }

  return {
    async enter(bucket, stored) {
      const ticket = { bucket, id: uuid() };
      const name = keysOf(bucket).bucket;
      if (!turns.busy(name) && (await reserve(ticket, stored))) return ticket;
      const deadline = performance.now() + WAIT_MS;
      // One of the waiters asks Redis, in the order they came; the others cost nothing.
      return turns.take(name, async () => {
        while (!(await reserve(ticket, stored))) {
          if (performance.now() > deadline) throw throttledError(1000);
          await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        }
        return ticket;
      });
    },
    async release(ticket) {
      await settle(ticket, 'release');
    },
    async succeed(ticket) {
      const settled = await settle(ticket, 'success');
      if (settled.lockedMs > 0) throw lockedError(settled.lockedMs);
      if (!settled.held) throw throttledError(1000);
    },
    async fail(ticket) {
      const { delayMs, ownLockMs, ownStep, allLockMs, allStep } = await settle(ticket, 'failure');
      return { delayMs, ownLockMs, ownStep, allLockMs, allStep };
    },
    async recorded(bucket) {
      const { bucket: own, all } = keysOf(bucket);
      await scripts.loginRecorded({ bucket: own, all }, {});
    },
    clear,
  };
}
