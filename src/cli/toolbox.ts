import { createGate, type Gate } from '../auth/gate.js';
import { ConfigError, loadConfig } from '../config/load.js';
import type { Config } from '../config/settings.js';
import { ApiError } from '../errors.js';
import { createKeyring, type Keyring } from '../keyring.js';
import { createLog, type Log } from '../log.js';
import { createHashing, type Hashing } from '../pools/hashing.js';
import { createMysql, type Mysql } from '../store/mysql.js';
import { createRedis, type Redis } from '../store/redis.js';
import { loadScripts } from '../store/scripts.js';
import { Failure } from './outcome.js';

/** What commands work with; each part is started when it is first asked for. */
export interface Toolbox {
  config: Config;
  log: Log;
  keyring: Keyring;
  mysql: () => Mysql;
  redis: () => Promise<Redis>;
  gate: () => Promise<Gate>;
  hashing: () => Hashing;
}

/**
 * Runs a command and closes whatever it opened.
 * @throws Failure when the settings or a store cannot be used
 */
export async function withToolbox<T>(work: (tools: Toolbox) => Promise<T>): Promise<T> {
  const config = settings();
  // Standard output is for the result alone.
  const log = createLog('error', 2);
  const open: (() => Promise<unknown>)[] = [];
  const once = <V>(make: () => V): (() => V) => {
    let made: { value: V } | null = null;
    return () => (made ??= { value: make() }).value;
  };
  const mysql = once(() => {
    // Long batches are normal here: the deadline of a login would be wrong.
    const made = createMysql({ url: config.mysqlUrl, connections: 4, log, statementMs: 60_000 });
    open.push(() => made.close());
    return made;
  });
  let isRedisOpen = false;
  const redis = once(async () => {
    const made = createRedis(config.redisUrl, log);
    open.push(() => Promise.resolve(made.disconnect()));
    // What connect() rejects with says only that it failed.
    let cause: Error | null = null;
    made.once('error', (error: Error) => (cause = error));
    await made.connect().catch((error: unknown) => {
      throw new Failure(`Redis cannot be used: ${reasonOf(cause ?? error)}`, { cause: error });
    });
    isRedisOpen = true;
    return made;
  });
  const tools: Toolbox = {
    config,
    log,
    keyring: createKeyring(config.secretKey, config.secretKeyPrevious),
    mysql,
    redis,
    gate: async () => createGate({ config, scripts: loadScripts(await redis()) }, await redis()),
    hashing: once(() => {
      const made = createHashing({ ...config, hashQueueMs: 3_600_000 }, log, { waited: () => undefined, ran: () => undefined, shed: () => undefined });
      open.push(() => made.close());
      return made;
    }),
  };
  try {
    return await work(tools);
  } catch (error) {
    throw failureOf(error, isRedisOpen ? 'MySQL or Redis' : 'MySQL');
  } finally {
    for (const close of open.reverse()) await close();
  }
}

/** Server error numbers that mean that tables or columns are missing. */
const NOT_MIGRATED = new Set([1054, 1146]);

/** What an operator can do something about as a Failure; everything else is a fault of ours and stays as it is. */
function failureOf(error: unknown, stores: string): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof ApiError && error.code === 'UNAVAILABLE') return new Failure(`${stores} cannot be used: ${reasonOf(error.cause ?? error)}`, { cause: error });
  const { sqlState, errno } = error as { sqlState?: string; errno?: number };
  if (sqlState !== undefined && NOT_MIGRATED.has(errno!)) return new Failure(`the database is not up to date (${error.message}): run "npm run cli -- migrate" first`, { cause: error });
  if (sqlState !== undefined) return new Failure(`MySQL refuses: ${error.message}`, { cause: error });
  return error.name === 'ReplyError' ? new Failure(`Redis refuses: ${error.message}`, { cause: error }) : error;
}

/** A message for every error: where a host has several addresses, the error that counts has none of its own. */
export const reasonOf = (error: unknown): string => {
  const { message, errors, code } = error as { message?: string; errors?: Error[]; code?: string };
  return message || errors?.map((one) => one.message).join(', ') || code || 'no reason given';
};

export function settings(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message, { cause: error });
    throw error;
  }
}
