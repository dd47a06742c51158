import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../config/settings.js';
import { Failure } from '../outcome.js';

/** Which MySQL and Redis the logins are measured with. */
export const KINDS = ['own', 'given', 'none'] as const;
export type Kind = (typeof KINDS)[number];

export interface Stores {
  kind: Exclude<Kind, 'none'>;
  /** Processes of private servers. */
  pids: number[];
  mysqlUrl: string;
  redisUrl: string;
}

interface Started extends Pick<Stores, 'mysqlUrl' | 'redisUrl'> {
  stop(): Promise<void>;
}

/** What dev/ brings for `npm run up`; absent where only the compiled service was installed. */
interface Dev {
  findProgram(kind: 'mysql' | 'redis'): Promise<{ path: string } | null>;
  startServices(folder: string, how: { say: (line: string) => void; fresh: boolean }): Promise<Started>;
}

const ROOT = new URL('../../../../', import.meta.url);
const FOLDER = fileURLToPath(new URL('.local/tune', ROOT));

/**
 * Private servers, when their programs are on this machine; those of MYSQL_URL and REDIS_URL, when they were asked
 * for by name; null when there are none. What must be undone goes to `closers`.
 * @throws Failure when what was asked for cannot be had
 */
export async function openStores(kind: Kind | null, { mysqlUrl, redisUrl }: Pick<Config, 'mysqlUrl' | 'redisUrl'>, closers: (() => Promise<unknown>)[]): Promise<Stores | null> {
  if (kind === 'none') return null;
  if (kind === 'given') return { kind, mysqlUrl, redisUrl, pids: [] };
  const dev = await loadDev().catch(() => null);
  const programs = dev ? await withoutUrls(() => Promise.all([dev.findProgram('mysql'), dev.findProgram('redis')])) : [null];
  if (!dev || programs.includes(null)) {
    if (kind === null) return null;
    throw new Failure('there are no server programs of MySQL or MariaDB and of Redis or Valkey on this machine; MYSQLD and REDIS_SERVER may name them');
  }
  try {
    const servers = await withoutUrls(() => dev.startServices(FOLDER, { say: () => undefined, fresh: true }));
    closers.push(async () => {
      await servers.stop();
      rmSync(FOLDER, { recursive: true, force: true });
    });
    return { kind: 'own', mysqlUrl: servers.mysqlUrl, redisUrl: servers.redisUrl, pids: childrenOf(process.pid) };
  } catch (error) {
    throw new Failure(`the private servers do not start: ${(error as Error).message}`, { cause: error });
  }
}

/** Processes that this one has started; none where there is no /proc. */
function childrenOf(pid: number): number[] {
  try {
    const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return all.filter((one) => parentOf(one) === pid).map(Number);
  } catch {
    return [];
  }
}

function parentOf(pid: string): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ')[1]);
  } catch {
    // It has ended meanwhile.
    return null;
  }
}

async function loadDev(): Promise<Dev> {
  const [services, programs] = (await Promise.all(['dev/services.mjs', 'dev/programs.mjs'].map((path) => import(new URL(path, ROOT).href)))) as [Pick<Dev, 'startServices'>, Pick<Dev, 'findProgram'>];
  return { ...services, ...programs };
}

/** What starts private servers takes those that the environment names instead, and these may be in use by people. */
async function withoutUrls<T>(work: () => Promise<T>): Promise<T> {
  const { MYSQL_URL, REDIS_URL } = process.env;
  delete process.env['MYSQL_URL'];
  delete process.env['REDIS_URL'];
  try {
    return await work();
  } finally {
    if (MYSQL_URL !== undefined) process.env['MYSQL_URL'] = MYSQL_URL;
    if (REDIS_URL !== undefined) process.env['REDIS_URL'] = REDIS_URL;
  }
}
