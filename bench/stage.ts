import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../src/config/load.js';
import type { Config } from '../src/config/settings.js';
import { loadArgon2 } from '../workers/argon2.js';
import type { HashingJob, HashingResult, HashingSetup } from './bare/hashing.js';
import type { SqlJob, SqlResult, SqlSetup } from './bare/sql.js';
import { startChild } from './child.js';
import { listenForOthers } from './cores.js';
import { ownDatabase, seedAccounts } from './database.js';
import type { Accounts, LoadJob, LoadResult } from './load/job.js';
import { readFacts, type Facts } from './machine.js';
import { median } from './numbers.js';
import type { Plan } from './options.js';
import { startPortcullis } from './portcullis.js';

/** Where results, the service's log and its profiles go. */
export const FOLDER = join(fileURLToPath(new URL('../../', import.meta.url)), '.local', 'bench');

/** What a measurement may ask for. Everything it asks runs in a process of its own. */
export interface Stage {
  readonly plan: Plan;
  readonly facts: Facts;
  /** Connections of a closed loop; also the statements in flight of the bare ones. */
  readonly connections: number;
  /** Load on the service. `second` is another program, for two loads at a time. */
  load(job: LoadOnService, second?: 'second'): Promise<LoadResult>;
  /** The same load program on a route that does nothing. */
  route(): Promise<LoadResult>;
  hashing(): Promise<HashingResult>;
  sql(statement: SqlJob['statement']): Promise<SqlResult>;
  /** Listens for others at work on the machine; to be called while nothing is measured. */
  listen(): Promise<void>;
  /** Share of all cores that others used, 0 to 1: the median of what was heard so far. */
  others(): number;
  say(line: string): void;
}

export type LoadOnService = Pick<LoadJob, 'traffic' | 'pace'> & { warmMs?: number };

const CONNECTIONS = 32;
const ACCOUNTS = 20_000;
const PASSWORD = 'correct horse battery staple';
/** What an answer may take beyond the time measured, in ms: sign-ins before, replies under way after. */
const SLACK_MS = 30_000;
/** The niceness that the service gives its hashing threads. */
const NICE = 10;

/** The service as it is by default, but for what would refuse a load on purpose. */
const settings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...env,
  ...{ NODE_ENV: 'production', HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', LOG_LEVEL: 'info', ENABLE_RETENTION_CRON: '0' },
  ...{ LIMIT_LOGIN_IP: '0', LIMIT_REFRESH_SESSION: '0', LIMIT_REFRESH_IP: '0' },
  SECRET_KEY: randomBytes(32).toString('base64'),
});

/**
 * Brings everything up. What must be undone at the end, in reverse order, goes to `closers` as it comes about.
 * @throws ConfigError when MYSQL_URL or REDIS_URL is missing, and whatever the stores say when they cannot be used
 */
export async function openStage(plan: Plan, say: (line: string) => void, closers: (() => Promise<unknown>)[]): Promise<Stage> {
  const env = settings(process.env);
  const config = loadConfig(env);
  const facts = await readFacts(config);
  const database = ownDatabase(config.mysqlUrl);
  closers.push(database.drop);
  say(`seeding ${ACCOUNTS} accounts`);
  await database.create();
  const hash = await hashOnce(config);
  await seedAccounts(database.url, ACCOUNTS, hash);
  const service = await startPortcullis({ ...env, MYSQL_URL: database.url }, FOLDER, plan.profile);
  closers.push(service.stop);

  const kept = <Program extends { stop: () => Promise<void> }>(program: Program): Program => {
    closers.push(program.stop);
    return program;
  };
  const accounts: Accounts = { count: ACCOUNTS, first: 0, password: PASSWORD };
  const first = kept(startChild<LoadJob, LoadResult>('load/main', accounts));
  const second = kept(startChild<LoadJob, LoadResult>('load/main', { ...accounts, first: ACCOUNTS / 2 }));
  const verifies: HashingSetup = { threads: config.hashThreads, nice: NICE, engine: config.argon2Engine, hash, password: PASSWORD };
  const hashing = kept(startChild<HashingJob, HashingResult>('bare/hashing', verifies));
  const statements: SqlSetup = { url: database.url, connections: config.mysqlConnections };
  const sql = kept(startChild<SqlJob, SqlResult>('bare/sql', statements));
  const route = kept(startChild<'where', { base: string; pid: number }>('bare/route', null));
  const bare = await route.ask('where', SLACK_MS);

  const { warmMs, measureMs } = plan;
  const heard: number[] = [];
  const patienceMs = warmMs + measureMs + SLACK_MS;
  return {
    plan,
    facts,
    connections: CONNECTIONS,
    say,
    async listen() {
      heard.push(await listenForOthers());
    },
    others: () => median(heard),
    async load(job, which) {
      const whole: LoadJob = { warmMs, measureMs, ...job, base: service.base, watch: service.pid };
      const result = await (which === 'second' ? second : first).ask(whole, patienceMs);
      if (!service.isAlive()) throw new Error(`the service ended under load: see ${join(FOLDER, 'portcullis.log')}`);
      return result;
    },
    route: () => first.ask({ traffic: 'empty', pace: { connections: CONNECTIONS }, warmMs, measureMs, base: bare.base, watch: bare.pid }, patienceMs),
    hashing: () => hashing.ask({ warmMs, measureMs }, patienceMs),
    sql: (statement) => sql.ask({ statement, inFlight: CONNECTIONS, warmMs, measureMs }, patienceMs),
  };
}

async function hashOnce({ argon2Engine, argon2MemoryKib, argon2Passes }: Config): Promise<string> {
  const argon2 = await loadArgon2(argon2Engine);
  return argon2.hash(PASSWORD, { memoryKib: argon2MemoryKib, passes: argon2Passes });
}
