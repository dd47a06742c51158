import { randomBytes } from 'node:crypto';
import { buildApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/load.js';
import { ApiError } from '../../src/errors.js';
import { createLog, type Log } from '../../src/log.js';
import { createClient, type Client } from './client.js';
import { createAccount, type Account, type NewAccount } from './accounts.js';
import { keepSecret, search } from './secrets.js';
import { freshDatabase, ownRedis, type OwnRedis, type Teardown } from './stores.js';

export interface TestApp {
  app: App;
  base: string;
  env: Record<string, string>;
  redis: OwnRedis;
  /** A client with a cookie jar and an address of its own. */
  client: (options?: { ip?: string; userAgent?: string }) => Client;
  /** An account straight from the store, with its password in the clear. */
  account: (account?: NewAccount) => Promise<Account>;
}

function newSecretKey(): string {
  const key = randomBytes(32).toString('base64');
  keepSecret(key, 'SECRET_KEY');
  return key;
}

/** Settings for tests: cheap hashes that may wait, no limits, delays and locks scaled 1:100, free ports. */
export const testEnv = (mysqlUrl: string, redisUrl: string): Record<string, string> => ({
  MYSQL_URL: mysqlUrl,
  REDIS_URL: redisUrl,
  SECRET_KEY: newSecretKey(),
  PORT: '0',
  OPS_PORT: '0',
  HASH_THREADS: '2',
  HASH_QUEUE_MS: '20000',
  ARGON2_MEMORY_KIB: '256',
  ARGON2_PASSES: '1',
  LOGIN_DELAYS_S: '0.02,0.04,0.08',
  LOCKOUT_MINUTES: '0.15,0.3,0.6',
  LIMIT_REFRESH_SESSION: '0',
  LIMIT_REFRESH_IP: '0',
  LIMIT_MFA: '0',
  LIMIT_DELETE_REQUEST: '0',
  LIMIT_DELETE: '0',
  LIMIT_RESTORE_REQUEST: '0',
  LIMIT_RESTORE: '0',
  LIMIT_EXPORT: '0',
  LIMIT_REGISTER: '0',
  LIMIT_REGISTER_ADDRESS: '0',
  LIMIT_EMAIL_VERIFY: '0',
  LIMIT_EMAIL_RESEND: '0',
  LIMIT_EMAIL_RESEND_ADDRESS: '0',
  LIMIT_PASSWORD_FORGOT: '0',
  LIMIT_PASSWORD_FORGOT_ADDRESS: '0',
  LIMIT_PASSWORD_RESET: '0',
  LIMIT_PASSWORD_CHANGE: '0',
  LOG_LEVEL: 'fatal',
});

/** A log at its finest level that nobody sees: it is searched for secrets at the end. */
function searchedLog(t: Teardown, settings: Record<string, string>): Log {
  const lines: string[] = [];
  t.teardown(() => search('log', lines.join('')));
  return createLog(settings['LOG_LEVEL'] ?? 'trace', { write: (line) => void lines.push(line) });
}

/** A whole service in this process, on stores of its own. */
export async function startApp(t: Teardown, settings: Record<string, string> = {}): Promise<TestApp> {
  const [mysqlUrl, redis] = await Promise.all([freshDatabase(t), ownRedis(t)]);
  const env = { ...testEnv(mysqlUrl, redis.url), ...settings };
  const log = searchedLog(t, settings);
  const build = (): Promise<App> => buildApp(loadConfig(env), log, { strict: true });
  // Once more when a store is slow to answer on a machine that is busy, as whoever runs a service would.
  const app = await build().catch((error: unknown) => (error instanceof ApiError && error.code === 'UNAVAILABLE' ? build() : Promise.reject(error as Error)));
  t.teardown(() => app.close());
  const base = `http://127.0.0.1:${app.port}`;
  return {
    app,
    base,
    env,
    redis,
    client: (options) => createClient(base, options),
    account: (account) => createAccount(app.needs, account),
  };
}
