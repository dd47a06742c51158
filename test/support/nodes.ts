import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Deps } from '../../src/deps.js';
import { loadConfig } from '../../src/config/load.js';
import { createKeyring } from '../../src/keyring.js';
import { createLog } from '../../src/log.js';
import { createHashing } from '../../src/pools/hashing.js';
import { createMysql } from '../../src/store/mysql.js';
import { createAccount, type Account, type NewAccount } from './accounts.js';
import { testEnv } from './app.js';
import { createClient, type Client } from './client.js';
import { PATIENCE_MS } from './patience.js';
import { search } from './secrets.js';
import { freshDatabase, ownRedis, type OwnRedis, type Teardown } from './stores.js';

/** One process of the service. */
export interface Node {
  base: string;
  opsBase: string;
  pid: number;
  /** Everything it wrote so far. */
  output: () => string;
  client: (options?: { ip?: string; userAgent?: string }) => Client;
  /** Ends it; gives its exit code, null after a signal that it could not catch. */
  stop: (signal?: NodeJS.Signals) => Promise<number | null>;
  /** Fulfilled with the same once it has ended, whoever wanted it. */
  ended: Promise<number | null>;
}

export interface Nodes {
  nodes: Node[];
  env: Record<string, string>;
  redis: OwnRedis;
  /** What a test may touch besides the service itself: the stores that the nodes share, and their keys. */
  needs: Pick<Deps, 'mysql' | 'keyring' | 'hashing' | 'config'>;
  account: (account?: NewAccount) => Promise<Account>;
  /** One more node on the same stores, say in place of one that was killed. */
  start: (settings?: Record<string, string>) => Promise<Node>;
}

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/**
 * n real processes of the service that share one database, of their own unless MYSQL_URL is among the settings, and one
 * Redis of their own.
 * @param main another build of src/main.js
 */
export async function startNodes(t: Teardown, n: number, settings: Record<string, string> = {}, main = MAIN): Promise<Nodes> {
  const [mysqlUrl, redis] = await Promise.all([settings['MYSQL_URL'] ?? freshDatabase(t), ownRedis(t)]);
  // One thread each: several nodes share this machine. The level is what the port is told at.
  const env = { ...testEnv(mysqlUrl, redis.url), HASH_THREADS: '1', MYSQL_CONNECTIONS: '8', LOG_LEVEL: 'info', ...settings };
  const config = loadConfig(env);
  const log = createLog('fatal');
  const mysql = createMysql({ url: mysqlUrl, connections: 4, log, statementMs: PATIENCE_MS });
  const hashing = createHashing(config, log, { waited: () => undefined, ran: () => undefined, shed: () => undefined });
  t.teardown(() => Promise.all([mysql.close(), hashing.close()]));
  const needs = { mysql, hashing, config, keyring: createKeyring(config.secretKey, config.secretKeyPrevious) };
  const start = (more: Record<string, string> = {}): Promise<Node> => startNode(t, main, { ...env, ...more }).catch(orOnceMore(() => startNode(t, main, { ...env, ...more })));
  return { nodes: await Promise.all(Array.from({ length: n }, () => start())), env, redis, needs, start, account: (wanted) => createAccount(needs, wanted) };
}

/** A node ends when a store is slow to answer while it starts, as on a machine that is busy; whoever runs one starts it again. */
const orOnceMore = (start: () => Promise<Node>) => (error: Error) => {
  if (!/UNAVAILABLE: no answer within/.test(error.message)) throw error;
  return start();
};

async function startNode(t: Teardown, main: string, env: Record<string, string>): Promise<Node> {
  const child = spawn(process.execPath, [main], { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const stop = (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    child.kill(signal);
    return ended;
  };
  t.teardown(async () => {
    await stop('SIGKILL');
    search('output', output);
  });
  const { port, opsPort } = await new Promise<{ port: number; opsPort: number }>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`;
      if (line.includes('"msg":"listening"')) resolve(JSON.parse(line) as { port: number; opsPort: number });
    });
    void ended.then((code) => reject(new Error(`a node ended with ${code} while it started:\n${output}`)));
  });
  const base = `http://127.0.0.1:${port}`;
  return { base, opsBase: `http://127.0.0.1:${opsPort}`, pid: child.pid!, output: () => output, client: (options) => createClient(base, options), stop, ended };
}
