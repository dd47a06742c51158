import { createGate, type Gate } from '../auth/gate.js';
import { ConfigError, loadConfig } from '../config/load.js';
import type { Config } from '../config/settings.js';
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
  const log = createLog('error');
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
  const redis = once(async () => {
    const made = createRedis(config.redisUrl, log);
    open.push(() => Promise.resolve(made.disconnect()));
    await made.connect().catch((error: unknown) => fail('Redis', error));
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
    if (error instanceof Error && 'code' in error && error.code === 'UNAVAILABLE') return fail('a store', error.cause ?? error);
    throw error;
  } finally {
    for (const close of open.reverse()) await close();
  }
}

export function settings(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message);
    throw error;
  }
}

const fail = (what: string, error: unknown): never => {
  throw new Failure(`${what} cannot be used: ${(error as Error).message}`);
};
