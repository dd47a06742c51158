import { randomBytes, randomInt } from 'node:crypto';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { migrate } from '../../src/store/migrate.js';
import { mysqlDump, redisDump } from './dumps.js';
import { search } from './secrets.js';

/** What a test gives back when it ends. */
export interface Teardown {
  teardown(work: () => unknown): void;
}

const given = (name: string): string => {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set: run the tests by npm test`);
  return value;
};

/** A database of its own, migrated, searched for secrets and dropped at the end. */
export async function freshDatabase(t: Teardown): Promise<string> {
  const url = await emptyDatabase(t);
  await migrate(url);
  return url;
}

/** A database of its own without any table, dropped at the end. */
export async function emptyDatabase(t: Teardown): Promise<string> {
  const url = new URL(given('MYSQL_URL'));
  const name = `portcullis_test_${randomBytes(6).toString('hex')}`;
  const admin = await createConnection({ uri: url.href });
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  t.teardown(async () => {
    const last = await createConnection({ uri: url.href });
    search('MySQL', await mysqlDump(last, name));
    await last.query(`DROP DATABASE ${name}`);
    await last.end();
  });
  url.pathname = `/${name}`;
  return url.href;
}

/** A Redis of its own, so that a test may flush, stall and kill it. */
export interface OwnRedis {
  url: string;
  port: number;
  pid: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts the Redis program that `npm test` found; `args` are added to its command line. With TEST_REDIS_CLUSTER=1 it is
 * a cluster, for tests that need no server that they configure, stop or put on a port.
 */
export async function ownRedis(t: Teardown, args: string[] = [], port?: number): Promise<OwnRedis> {
  if (process.env['TEST_REDIS_CLUSTER'] !== '1' || args.length > 0 || port !== undefined) return oneRedis(t, args, port);
  const { ownCluster } = await import('./cluster.js');
  const { url } = await ownCluster(t);
  const alone = (): never => {
    throw new Error('this test needs one server of Redis alone');
  };
  return { url, get port() { return alone(); }, get pid() { return alone(); }, stop: alone };
}

/** One server in any case; searched for secrets at the end, if it still answers. */
export async function oneRedis(t: Teardown, args: string[] = [], port?: number): Promise<OwnRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-redis-'));
  const chosen = port ?? (await freePort());
  const child = spawn(given('REDIS_SERVER'), ['--port', String(chosen), '--bind', '127.0.0.1', '--save', '', '--dir', folder, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  t.teardown(async () => {
    const isRunning = child.exitCode === null && child.signalCode === null;
    const dump = isRunning ? await redisDump(chosen) : null;
    if (dump !== null) search('Redis', dump);
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => chunk.toString().includes('Ready to accept connections') && resolve());
    child.once('exit', () => reject(new Error('redis-server ended while it started')));
  });
  return { url: `redis://127.0.0.1:${chosen}`, port: chosen, pid: child.pid!, stop };
}

/**
 * A port that was free a moment ago, below those that the system gives to outgoing connections: while its server is
 * restarted none of them takes it, nor does a client that tries on and on reach itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
