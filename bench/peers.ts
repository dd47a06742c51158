import { execFile, fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Config } from '../src/config/settings.js';
import { ownDatabase } from './database.js';
import type { Facts } from './machine.js';
import { onDemand, type Running } from './on-demand.js';

/** How better-auth is set up: as it is by default, with its session and account read by one join, or with sessions in a cookie. */
export const PEER_MODES = { plain: 'better-auth get-session', joined: '… with experimental.joins', cached: '… with its cookie cache' } as const;
export type PeerMode = keyof typeof PEER_MODES;

/** What bench/peers/better-auth.mjs is told. */
export interface PeerSetup {
  mysqlUrl: string;
  connections: number;
  secret: string;
  argon2: { memoryKib: number; passes: number };
  cookieCache: boolean;
  joins: boolean;
  /** Accounts that it creates, after its tables; 0: both are there. */
  accounts: number;
  passwordHash: string;
}

export interface Peer extends Running {
  base: string;
  pid: number;
}

/** In the source tree: its packages are not ours. */
const FOLDER = fileURLToPath(new URL('../../bench/peers/', import.meta.url));
const INSTALL_MS = 180_000;
const START_MS = 30_000;
const STOP_MS = 5_000;

/**
 * Installs what its lock file says, unless it is there.
 * @returns its version
 * @throws Error with npm's reason when it cannot be installed
 */
export async function installPeer(say: (line: string) => void): Promise<string> {
  const wanted = versionIn('package-lock.json');
  if (versionIn('node_modules/.package-lock.json') !== wanted) {
    say(`installing better-auth ${wanted ?? ''} in bench/peers`);
    await npmInstall();
  }
  return versionIn('node_modules/.package-lock.json') ?? 'unknown';
}

function versionIn(lock: string): string | null {
  const path = join(FOLDER, lock);
  if (!existsSync(path)) return null;
  const { packages } = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, { version?: string }> };
  return packages['node_modules/better-auth']?.version ?? null;
}

async function npmInstall(): Promise<void> {
  const own = process.env['npm_execpath'];
  const [command, first] = own?.endsWith('npm-cli.js') ? [process.execPath, [own]] : ['npm', []];
  // What npm told us of the project we were started from would lead it there.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(config_local_prefix|package_|lifecycle_)/.test(name)));
  try {
    await promisify(execFile)(command, [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'], { cwd: FOLDER, env, timeout: INSTALL_MS });
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new Error(/^npm (?:error|ERR!) (?!code|errno|syscall)(.+)$/m.exec(stderr ?? '')?.[1] ?? message.split('\n')[0]!, { cause: error });
  }
}

/** What `createPeers` needs of the stage. */
export interface PeerPlan {
  config: Config;
  passwordHash: string;
  accounts: number;
  /** Where its version is noted, or why there is none. */
  facts: Pick<Facts, 'peer'>;
  closers: (() => Promise<unknown>)[];
  say: (line: string) => void;
}

/** Installs and starts better-auth when it is first asked for, each mode in a process of its own; null when that cannot be. */
export function createPeers({ config, passwordHash, accounts, facts, closers, say }: PeerPlan): (mode: PeerMode) => Promise<Peer | null> {
  const secret = randomBytes(32).toString('base64');
  const database = ownDatabase(config.mysqlUrl);
  let ready: Promise<boolean> | null = null;
  let isSeeded = false;

  async function prepare(): Promise<boolean> {
    try {
      facts.peer = await installPeer(say);
    } catch (error) {
      facts.peer = `skipped: ${(error as Error).message}`;
      say(`better-auth is ${facts.peer}`);
      return false;
    }
    closers.push(database.drop);
    await database.createEmpty();
    return true;
  }

  async function start(mode: PeerMode): Promise<Peer> {
    const { mysqlConnections, argon2MemoryKib, argon2Passes } = config;
    const argon2 = { memoryKib: argon2MemoryKib, passes: argon2Passes };
    const peer = await startPeer({ mysqlUrl: database.url, connections: mysqlConnections, secret, argon2, cookieCache: mode === 'cached', joins: mode === 'joined', accounts: isSeeded ? 0 : accounts, passwordHash });
    isSeeded = true;
    return peer;
  }

  const modes = Object.fromEntries((Object.keys(PEER_MODES) as PeerMode[]).map((mode) => [mode, onDemand(() => start(mode), closers)])) as Record<PeerMode, () => Promise<Peer>>;
  return async (mode) => ((await (ready ??= prepare())) ? modes[mode]() : null);
}

/** Starts bench/peers/better-auth.mjs in a process of its own. */
export async function startPeer(setup: PeerSetup): Promise<Peer> {
  const env = { ...process.env, NODE_ENV: 'production', PEER_SETUP: JSON.stringify(setup) };
  const child = fork(join(FOLDER, 'better-auth.mjs'), [], { cwd: FOLDER, env, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null;
  const stop = async (): Promise<void> => {
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    if (!isAlive()) return;
    if (child.connected) child.disconnect();
    const insist = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(insist);
  };
  try {
    return { base: `http://127.0.0.1:${await portOf(child)}`, pid: child.pid!, isAlive, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const portOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`better-auth did not start within ${START_MS} ms`)), START_MS);
    child.once('exit', (code) => reject(new Error(`better-auth ended while it started (${code ?? 'signal'})`)));
    child.once('message', ({ port }: { port: number }) => {
      clearTimeout(timer);
      resolve(port);
    });
  });
