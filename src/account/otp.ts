import { randomInt } from 'node:crypto';
import { v4 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';
import { ApiError, retrySeconds } from '../errors.js';
import { KEYS } from '../store/redis.js';

type Needs = Pick<Deps, 'config' | 'keyring' | 'scripts' | 'log'>;

/** What a code is for. It is good for nothing else. */
export type Use = 'delete' | 'restore';

/** Whose code it is. An address that belongs to nobody has null: its attempts count all the same. */
export interface Holder {
  id: string | null;
  email: string;
}

/** The right code, taken by one caller. It must be settled; a claim whose node died lapses after CLAIM_MS. */
export interface Claim {
  /** The code is used up. */
  spend(): Promise<void>;
  /** The code is as good as before. */
  giveBack(): Promise<void>;
}

const DIGITS = 8;
const MOST_FAILURES = 5;
/**
 * How long failed attempts are remembered after the last, and so how long a lock stands, in ms. At 3 h an account
 * sees 45 guesses in a day at most; much longer, and five requests would keep an owner from coming back for days.
 */
const LOCK_MS = 3 * 3600 * 1000;
const MOST_ISSUES = 10;
const ISSUES_MS = 24 * 3600 * 1000;
/** Longer than a deletion takes: 2 s for those who may object, then one transaction. */
const CLAIM_MS = 10_000;

/** Redis holds no address and no id. Codes of both uses share the name, so that one script can see both. */
const accountOf = (keyring: Deps['keyring'], holder: Holder): string => keyring.mac('otp', 'account', normaliseEmail(holder.email)).toString('base64url', 0, 16);

const hashOf = (keyring: Deps['keyring'], holder: Holder, use: Use, code: string): string => keyring.mac('otp', 'code', use, holder.id ?? '', code).toString('base64url');

/** A new code, which replaces the one before; null when the account had its share for a day. */
export async function issueCode({ config, keyring, scripts }: Needs, holder: Holder, use: Use): Promise<string | null> {
  const account = accountOf(keyring, holder);
  const code = String(randomInt(10 ** DIGITS)).padStart(DIGITS, '0');
  const issued = await scripts.otpIssue(
    { otp: KEYS.otp(account, use), issues: KEYS.otpIssues(account) },
    { codeHash: hashOf(keyring, holder, use, code), ttlMs: ttlMs(config), maxIssues: MOST_ISSUES, windowMs: ISSUES_MS, ticket: uuid() },
  );
  return issued ? code : null;
}

/**
 * Checks a code and takes it; of any number of callers one gets it.
 * @throws ApiError OTP_INVALID, OTP_LOCKED with retryAfter, UNAVAILABLE
 */
export async function claimCode({ keyring, scripts, log }: Needs, holder: Holder, use: Use, code: string): Promise<Claim> {
  const account = accountOf(keyring, holder);
  const otp = KEYS.otp(account, use);
  const other = KEYS.otp(account, use === 'delete' ? 'restore' : 'delete');
  const ticket = uuid();
  const verdict = await scripts.otpClaim({ otp, other }, { codeHash: hashOf(keyring, holder, use, code), maxFailures: MOST_FAILURES, lockMs: LOCK_MS, ticket, claimMs: CLAIM_MS });
  if (verdict.outcome === 'locked') throw new ApiError('OTP_LOCKED', { retryAfter: retrySeconds(verdict.retryMs) });
  if (verdict.outcome === 'refused') throw new ApiError('OTP_INVALID');
  const settle = async (outcome: 'give back' | 'spend'): Promise<void> => {
    // What was done with the code stands in MySQL by now: a claim that cannot be settled only lapses.
    await scripts.otpSettle({ otp }, { ticket, outcome }).catch((error: unknown) => log.warn({ err: error }, 'the claim of a one-time code lapses by itself'));
  };
  return { spend: () => settle('spend'), giveBack: () => settle('give back') };
}

/** Work that is not done leaves the code as good as it was. */
export async function giveBackOnThrow<T>(claim: Claim, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await claim.giveBack();
    throw error;
  }
}

/** Lifetime of a code, in ms. */
export const ttlMs = (config: Pick<Deps['config'], 'otpTtlMin'>): number => Math.round(config.otpTtlMin * 60_000);
