import { fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loadArgon2 } from '../../../workers/argon2.js';
import type { HashCost } from '../../../workers/protocol.js';
import { loadConfig } from '../../config/load.js';
import { createLog } from '../../log.js';
import { createScratch } from '../../store/scratch.js';
import { Failure } from '../outcome.js';
import { reasonOf } from '../toolbox.js';
import { emailOf, type LoadJob, type LoadResult, type LoadSetup } from './job.js';
import { openStores, type Kind } from './stores.js';

/** A service under load, with accounts of every cost. */
export interface Stand {
  engine: string;
  /** Which MySQL and Redis logins use. */
  stores: Kind;
  /** Sets the number of hashing threads, and waits until they are there. */
  resize(threads: number): Promise<void>;
  /** Logs accounts of a group in. */
  load(job: LoadJob): Promise<LoadResult>;
}

const PASSWORD = 'correct horse battery staple';
/** Each group has 16 to the power of this many accounts. */
const DIGITS = 3;
const START_MS = 20_000;
const RESIZE_MS = 30_000;
const STOP_MS = 5_000;
const program = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * The environment of the service under test: as the operator has it, but for what would refuse a load on purpose.
 * Its own cost is the least there is, so that no stored hash is renewed: each is verified at the cost it has.
 */
const settings = (stores: { mysqlUrl: string; redisUrl: string } | null): NodeJS.ProcessEnv => ({
  ...process.env,
  ...{ MYSQL_URL: stores?.mysqlUrl ?? 'mysql://none/none', REDIS_URL: stores?.redisUrl ?? 'redis://none' },
  ...{ NODE_ENV: 'production', SECRET_KEY: randomBytes(32).toString('base64'), SECRET_KEY_PREVIOUS: '', NOTIFY_FILE: '/dev/null' },
  ...{ HOST: '127.0.0.1', PORT: '0', OPS_HOST: '127.0.0.1', OPS_PORT: '0', TLS_CERT_FILE: '', TLS_KEY_FILE: '', LOG_LEVEL: 'info' },
  ...{ ARGON2_MEMORY_KIB: '8', ARGON2_PASSES: '1', HASH_THREADS: '1', HASH_QUEUE_MS: '60000', LIMIT_LOGIN_IP: '0', ENABLE_RETENTION_CRON: '0' },
});

/**
 * Brings everything up. What must be undone at the end, in reverse order, goes to `closers` as it comes about.
 * @throws Failure when something does not start
 */
export async function openStand(kind: Kind | null, groups: Record<string, HashCost>, closers: (() => Promise<unknown>)[]): Promise<Stand> {
  const given = loadConfig(kind === 'given' ? process.env : settings(null));
  const stores = await openStores(kind, given, closers);
  const argon2 = await loadArgon2(given.argon2Engine);
  const hashes: Record<string, string> = {};
  for (const [group, cost] of Object.entries(groups)) hashes[group] = await argon2.hash(PASSWORD, cost);
  const env = settings(stores);
  if (stores) {
    const scratch = await createScratch(stores.mysqlUrl, createLog('silent')).catch((error: unknown) => {
      throw new Failure(`no database can be created: ${reasonOf((error as Error).cause ?? error)}`, { cause: error });
    });
    closers.push(scratch.drop);
    env['MYSQL_URL'] = scratch.url;
    for (const [group, hash] of Object.entries(hashes)) await scratch.seed(emailOf(group, 0).replace('0@example.com', ''), DIGITS, hash);
  } else env['TUNE_HASHES'] = JSON.stringify(hashes);

  const service = await startService(program(stores ? '../../main.js' : './front.js'), env);
  closers.push(service.stop);
  const ask = startLoad({ base: `http://127.0.0.1:${service.port}`, pid: service.pid, stores: stores?.pids ?? [], password: PASSWORD, count: 16 ** DIGITS }, closers);
  const pool = `http://127.0.0.1:${service.opsPort}/pool`;
  return {
    engine: argon2.engine,
    stores: stores?.kind ?? 'none',
    async resize(threads) {
      const reply = await fetch(pool, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threads }) });
      if (!reply.ok) throw new Failure(`the pool cannot have ${threads} threads: ${await reply.text()}`);
      for (const started = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, 20))) {
        const { alive, ending } = (await (await fetch(pool)).json()) as { alive: number; ending: number };
        if (alive === threads && ending === 0) return;
        if (performance.now() - started > RESIZE_MS) throw new Failure(`of ${threads} threads only ${alive} came up`);
      }
    },
    load: ask,
  };
}

interface Service {
  port: number;
  opsPort: number;
  pid: number;
  stop: () => Promise<void>;
}

/** Starts a program that writes a line "listening" with its ports. */
async function startService(path: string, env: NodeJS.ProcessEnv): Promise<Service> {
  const child = spawn(process.execPath, [path], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const insist = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(insist);
  };
  let told = '';
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));
  const lines = createInterface({ input: child.stdout });
  const listening = new Promise<{ port: number; opsPort: number }>((resolve, reject) => {
    lines.on('line', (line) => {
      told += `${line}\n`;
      if (line.includes('"msg":"listening"')) resolve(JSON.parse(line) as { port: number; opsPort: number });
    });
    void ended.then(() => reject(new Error('it ended')));
    setTimeout(() => reject(new Error(`it is not up after ${START_MS / 1000} s`)), START_MS).unref();
  });
  try {
    const { port, opsPort } = await listening;
    // From now on its log is thrown away as cheaply as can be.
    lines.close();
    child.stdout.resume();
    return { port, opsPort, pid: child.pid!, stop };
  } catch (error) {
    await stop();
    throw new Failure(`the service to measure does not start: ${(error as Error).message}\n${told.slice(-2000)}`.trim(), { cause: error });
  }
}

/** Starts the load program, which does one job at a time. */
function startLoad(setup: LoadSetup, closers: (() => Promise<unknown>)[]): (job: LoadJob) => Promise<LoadResult> {
  const child = fork(program('./load.js'), [JSON.stringify(setup)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  closers.push(async () => {
    if (child.connected) child.disconnect();
    await ended;
  });
  return (job) =>
    new Promise((resolve, reject) => {
      const gone = (): void => reject(new Failure('the load program ended early'));
      child.once('exit', gone);
      child.once('message', (result) => {
        child.removeListener('exit', gone);
        resolve(result as LoadResult);
      });
      child.send(job);
    });
}
