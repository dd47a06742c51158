import { createLog } from '../../src/log.js';
import { createRedis, type Redis } from '../../src/store/redis.js';
import { loadScripts, type Scripts } from '../../src/store/scripts.js';
import { ownRedis, type Teardown } from './stores.js';

const KEYS = { otp: 'idp:{a}:otp:delete', other: 'idp:{a}:otp:restore', issues: 'idp:{a}:otp-issues' };

/** The scripts of one-time codes on a Redis of their own; what a test leaves out has a value that does not matter. */
export interface Codes {
  redis: Redis;
  keys: typeof KEYS;
  issue: (codeHash: string, over?: Partial<Parameters<Scripts['otpIssue']>[1]> & { otp?: string }) => Promise<boolean>;
  /** Gives the outcome. */
  claim: (codeHash: string, over?: Partial<Parameters<Scripts['otpClaim']>[1]>) => Promise<string>;
  settle: (ticket: string, outcome: 'give back' | 'spend') => Promise<boolean>;
  failures: () => Promise<number>;
}

export async function codes(t: Teardown): Promise<Codes> {
  const redis = createRedis((await ownRedis(t)).url, createLog('silent'));
  await redis.connect();
  t.teardown(() => redis.disconnect());
  const scripts = loadScripts(redis);
  let tickets = 0;
  return {
    redis,
    keys: KEYS,
    issue: (codeHash, { otp = KEYS.otp, ...over } = {}) =>
      scripts.otpIssue({ otp, issues: KEYS.issues }, { codeHash, ttlMs: 60_000, maxIssues: 1000, windowMs: 60_000, ticket: `issue${(tickets += 1)}`, ...over }),
    claim: async (codeHash, over = {}) =>
      (await scripts.otpClaim({ otp: KEYS.otp, other: KEYS.other }, { codeHash, maxFailures: 5, lockMs: 60_000, ticket: `claim${(tickets += 1)}`, claimMs: 60_000, ...over })).outcome,
    settle: (ticket, outcome) => scripts.otpSettle({ otp: KEYS.otp }, { ticket, outcome }),
    failures: async () => Number(await redis.hget(KEYS.otp, 'failures')),
  };
}

export const times = <T>(n: number, work: (i: number) => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: n }, (_, i) => work(i)));

export const count = <T>(values: T[], value: T): number => values.filter((one) => one === value).length;
