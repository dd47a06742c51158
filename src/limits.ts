import { v4 as uuid } from 'uuid';
import type { Limit } from './config/readers.js';
import type { Config } from './config/settings.js';
import { ApiError, retrySeconds } from './errors.js';
import type { Keyring } from './keyring.js';
import { KEYS } from './store/redis.js';
import type { Scripts } from './store/scripts.js';

/**
 * Every limit: the setting that holds n/seconds, what is counted, and what happens while Redis is down:
 * `refuse` answers 503, `local` counts in this process.
 */
export const LIMITS = {
  'login-ip': { setting: 'limitLoginIp', by: 'network', redisDown: 'refuse' },
  'oauth': { setting: 'limitOAuth', by: 'network', redisDown: 'refuse' },
  'refresh-ip': { setting: 'limitRefreshIp', by: 'network', redisDown: 'local' },
  'refresh-session': { setting: 'limitRefreshSession', by: 'session', redisDown: 'local' },
  'mfa': { setting: 'limitMfa', by: 'user', redisDown: 'refuse' },
  'delete-request': { setting: 'limitDeleteRequest', by: 'user', redisDown: 'refuse' },
  'delete': { setting: 'limitDelete', by: 'user', redisDown: 'refuse' },
  'restore-request': { setting: 'limitRestoreRequest', by: 'network', redisDown: 'refuse' },
  'restore': { setting: 'limitRestore', by: 'network', redisDown: 'refuse' },
  'register': { setting: 'limitRegister', by: 'network', redisDown: 'refuse' },
  'register-address': { setting: 'limitRegisterAddress', by: 'address', redisDown: 'refuse' },
  'email-verify': { setting: 'limitEmailVerify', by: 'network', redisDown: 'refuse' },
  'email-resend': { setting: 'limitEmailResend', by: 'network', redisDown: 'refuse' },
  'email-resend-address': { setting: 'limitEmailResendAddress', by: 'address', redisDown: 'refuse' },
  'password-forgot': { setting: 'limitPasswordForgot', by: 'network', redisDown: 'refuse' },
  'password-forgot-address': { setting: 'limitPasswordForgotAddress', by: 'address', redisDown: 'refuse' },
  'password-reset': { setting: 'limitPasswordReset', by: 'network', redisDown: 'refuse' },
  'password-change': { setting: 'limitPasswordChange', by: 'user', redisDown: 'refuse' },
  'export': { setting: 'limitExport', by: 'user', redisDown: 'refuse' },
} as const satisfies Record<string, { setting: keyof Config; by: 'network' | 'user' | 'session' | 'address'; redisDown: 'refuse' | 'local' }>;

export type LimitName = keyof typeof LIMITS;

export interface Limits {
  /**
   * Counts one use by `counted`, in a sliding window: never more than n in any window, refusals not counted.
   * @throws ApiError RATE_LIMITED with retryAfter, UNAVAILABLE
   */
  hit(name: LimitName, counted: string): Promise<void>;
}

/** While Redis is away it is asked again so often, in ms: one that hangs must not hold up every refresh. */
const AWAY_MS = 1000;

export function createLimits(config: Config, keyring: Keyring, scripts: Scripts): Limits {
  const local = localWindows();
  let awayUntil = 0;

  async function take(window: string, { max, windowMs }: NonNullable<Limit>, redisDown: 'refuse' | 'local'): Promise<Verdict> {
    if (redisDown === 'local' && performance.now() < awayUntil) return local(window, max, windowMs);
    try {
      return await scripts.rateLimit({ window }, { max, windowMs, ticket: uuid() });
    } catch (error) {
      if (redisDown === 'refuse' || !(error instanceof ApiError)) throw error;
      awayUntil = performance.now() + AWAY_MS;
      return local(window, max, windowMs);
    }
  }

  return {
    async hit(name, counted) {
      const { setting, redisDown } = LIMITS[name];
      const limit = config[setting];
      if (limit === null) return;
      // Keyed, since a Redis key must not hold an address or a user id.
      const window = KEYS.limit(name, keyring.mac('limit', counted).toString('base64url', 0, 16));
      const verdict = await take(window, limit, redisDown);
      if (!verdict.allowed) throw new ApiError('RATE_LIMITED', { retryAfter: retrySeconds(verdict.retryMs) });
    },
  };
}

interface Verdict {
  allowed: boolean;
  retryMs: number;
}

/** Keys counted at most; beyond it the oldest are forgotten. */
const MOST_KEYS = 50_000;

/** The same window in this process, for as long as Redis is away. */
function localWindows(): (key: string, max: number, windowMs: number) => Verdict {
  const windows = new Map<string, number[]>();
  return (key, max, windowMs) => {
    const now = performance.now();
    const taken = (windows.get(key) ?? []).filter((moment) => moment > now - windowMs);
    windows.delete(key);
    windows.set(key, taken);
    if (windows.size > MOST_KEYS) windows.delete(windows.keys().next().value!);
    if (taken.length >= max) return { allowed: false, retryMs: taken[0]! + windowMs - now };
    taken.push(now);
    return { allowed: true, retryMs: 0 };
  };
}
