import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../src/config/load.js';
import type { Config } from '../src/config/settings.js';
import { loadArgon2 } from '../workers/argon2.js';
import type { HashingJob, HashingResult, HashingSetup } from './bare/hashing.js';
import type { SqlJob, SqlResult, SqlSetup } from './bare/sql.js';
import { startChild, type Child } from './child.js';
import { listenForOthers } from './cores.js';
import { ownDatabase, seedAccounts, type Database } from './database.js';
import type { LoadJob, LoadResult, LoadTarget, SessionStore } from './load/job.js';
import { readFacts, type Facts } from './machine.js';
import { median } from './numbers.js';
import type { Plan } from './options.js';
import { onDemand } from './on-demand.js';
import { createPeers, type PeerMode } from './peers.js';
import { startPortcullis, type Portcullis } from './portcullis.js';

/** Where results, the service's log and its profiles go. */
export const FOLDER = join(fileURLToPath(new URL('../../', import.meta.url)), '.local', 'bench');

/** What a measurement may ask for. Everything it asks runs in a process of its own. */
export interface Stage {
  readonly plan: Plan;
  readonly config: Config;
  readonly facts: Facts;
  /** Connections of a closed loop; also the statements in flight of the bare ones. */
  readonly connections: number;
  /** Of one that logs in: on two cores as many as of the others. */
  readonly loginConnections: number;
  /** Load on the service, unless `target` is another. `program` is another load program, for several loads at a time. */
  load(ask: LoadAsk, program?: 0 | 1 | 2): Promise<LoadResult>;
  /** The service with ACCOUNTS accounts; started anew when it has ended. */
  target(): Promise<LoadTarget>;
  /** Another node, on the same database unless `on` is another; whoever asked stops it. */
  startNode(name: string, on?: Seeded): Promise<{ target: LoadTarget; stop: () => Promise<void> }>;
  /** Another database with so many accounts; whoever asked drops it. */
  seed(accounts: number): Promise<Seeded>;
  /** The peer; null when it cannot be had, and `facts.peer` says why. */
  peer(mode: PeerMode): Promise<LoadTarget | null>;
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

export type LoadAsk = Pick<LoadJob, 'traffic' | 'pace'> & Partial<LoadJob>;

export interface Seeded {
  database: Database;
  accounts: number;
}

const CONNECTIONS = 128;
const LOGINS_PER_THREAD = 32;
const ACCOUNTS = 20_000;
/** Accounts whose profiles or sessions are read in turn. */
const READ = 256;
const PEER_ACCOUNTS = 5_000;
const PASSWORD = 'correct horse battery staple';
/** What an answer may take beyond the time measured, in ms: sign-ins before, replies under way after. */
const SLACK_MS = 60_000;
/** The niceness that the service gives its hashing threads. */
const NICE = 10;
/** How often one session may be used where no limit stands in the way. */
const UNLIMITED = 1_000;

/** The service as it is by default, limits included; every client address of a load program is believed. */
const settings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...env,
  ...{ NODE_ENV: 'production', HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', LOG_LEVEL: 'info', ENABLE_RETENTION_CRON: '0', TRUSTED_PROXIES: '127.0.0.0/8' },
  SECRET_KEY: randomBytes(32).toString('base64'),
});

/**
 * Brings up what everything needs; the rest comes when it is first asked for. What must be undone at the end,
 * in reverse order, goes to `closers` as it comes about.
 * @throws ConfigError when MYSQL_URL or REDIS_URL is missing, and whatever the stores say when they cannot be used
 */
export async function openStage(plan: Plan, say: (line: string) => void, closers: (() => Promise<unknown>)[]): Promise<Stage> {
  const env = settings(process.env);
  const config = loadConfig(env);
  const facts = await readFacts(config);
  const passwordHash = await hashOnce(config);
  const { warmMs, measureMs } = plan;
  const heard: number[] = [];

  async function seed(accounts: number, withSessions: boolean): Promise<Seeded> {
    const database = ownDatabase(config.mysqlUrl);
    closers.push(database.drop);
    say(`seeding ${accounts.toLocaleString('en')} accounts`);
    await database.create();
    await seedAccounts(database.url, accounts, passwordHash, withSessions);
    return { database, accounts };
  }

  const main = await seed(ACCOUNTS, false);
  const child = <Job, Result>(file: string, setup: unknown): (() => Promise<Child<Job, Result>>) => onDemand(() => startChild<Job, Result>(file, setup), closers);

  const startService = (name: string, { database }: Seeded): Promise<Portcullis> => startPortcullis({ ...env, MYSQL_URL: database.url }, FOLDER, plan.profile && database === main.database, name);
  let starts = 0;
  const service = onDemand(() => {
    starts += 1;
    if (starts > 1) say('the service had ended and is started again');
    return startService(starts > 1 ? `portcullis-${starts}` : 'portcullis', main);
  }, closers);
  const programs = [0, 1, 2].map((program) => child<LoadJob, LoadResult>('load/main', { program }));
  const hashing = child<HashingJob, HashingResult>('bare/hashing', { threads: config.hashThreads, nice: NICE, engine: config.argon2Engine, hash: passwordHash, password: PASSWORD } satisfies HashingSetup);
  const sql = child<SqlJob, SqlResult>('bare/sql', { url: main.database.url, connections: config.mysqlConnections } satisfies SqlSetup);
  const route = child<'where', { base: string; pid: number }>('bare/route', null);
  const peers = createPeers({ config, say, closers, passwordHash, accounts: PEER_ACCOUNTS, facts });

  const perAddress = config.limitRefreshIp?.max ?? UNLIMITED;
  const limits: Pick<SessionStore, 'perSession' | 'perAddress'> = { perAddress, perSession: Math.min(perAddress, config.limitRefreshSession?.max ?? UNLIMITED) };
  const targetOf = ({ base, pid }: { base: string; pid: number }, on: Seeded | null): LoadTarget => ({
    base,
    pid,
    accounts: on?.accounts ?? 1,
    password: PASSWORD,
    sessions: on && { mysqlUrl: on.database.url, secretKey: env['SECRET_KEY']!, ...limits },
  });
  const target = async (): Promise<LoadTarget> => targetOf(await service(), main);

  const stage: Stage = {
    plan,
    config,
    facts,
    connections: CONNECTIONS,
    loginConnections: LOGINS_PER_THREAD * config.hashThreads,
    say,
    target,
    seed: (accounts) => seed(accounts, true),
    async startNode(name, on = main) {
      const node = await startService(name, on);
      closers.push(node.stop);
      return { target: targetOf(node, on), stop: node.stop };
    },
    async peer(mode) {
      const peer = await peers(mode);
      return peer && { ...targetOf(peer, null), accounts: PEER_ACCOUNTS };
    },
    async load(ask, program = 0) {
      const job: LoadJob = { warmMs, measureMs, sessions: READ, ...ask, target: ask.target ?? (await target()) };
      const result = await (await programs[program]!()).ask(job, job.warmMs + job.measureMs + SLACK_MS);
      if (!isRunning(job.target.pid)) throw new Error('the server ended under load: see its log in .local/bench');
      return result;
    },
    route: async () => stage.load({ traffic: 'empty', pace: { connections: CONNECTIONS }, target: targetOf(await (await route()).ask('where', SLACK_MS), null) }),
    hashing: async () => (await hashing()).ask({ warmMs, measureMs }, SLACK_MS + warmMs + measureMs),
    sql: async (statement) => (await sql()).ask({ statement, inFlight: CONNECTIONS, warmMs, measureMs }, SLACK_MS + warmMs + measureMs),
    async listen() {
      heard.push(await listenForOthers());
    },
    others: () => median(heard),
  };
  return stage;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function hashOnce({ argon2Engine, argon2MemoryKib, argon2Passes }: Config): Promise<string> {
  const argon2 = await loadArgon2(argon2Engine);
  return argon2.hash(PASSWORD, { memoryKib: argon2MemoryKib, passes: argon2Passes });
}
