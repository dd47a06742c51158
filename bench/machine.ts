import { availableParallelism, cpus, release, totalmem } from 'node:os';
import type { RowDataPacket } from 'mysql2/promise';
import { loadArgon2 } from '../workers/argon2.js';
import type { Limit } from '../src/config/readers.js';
import type { Config } from '../src/config/settings.js';
import { createLog } from '../src/log.js';
import { createRedis } from '../src/store/redis.js';
import { withConnection } from './database.js';

/** Everything that a figure depends on and a reader cannot see. */
export interface Facts {
  at: string;
  cpu: string;
  cores: number;
  memoryGiB: number;
  kernel: string;
  node: string;
  mysql: string;
  /** Whether a commit waits for the disk. */
  durable: boolean;
  bufferPoolMiB: number;
  redis: string;
  argon2: { engine: string; memoryKib: number; passes: number; threads: number };
  mysqlConnections: number;
  /** n per s, or off. */
  limits: { loginIp: string; refreshSession: string; refreshIp: string };
  /** Longest wait for a hashing thread, in ms. */
  queueMs: number;
  /** Version of better-auth, or why there is none. */
  peer: string;
}

export async function readFacts(config: Config): Promise<Facts> {
  const [mysql, redis, argon2] = await Promise.all([readMysql(config.mysqlUrl), readRedis(config.redisUrl), loadArgon2(config.argon2Engine)]);
  return {
    at: new Date().toISOString(),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    ...mysql,
    redis,
    argon2: { engine: argon2.engine, memoryKib: config.argon2MemoryKib, passes: config.argon2Passes, threads: config.hashThreads },
    mysqlConnections: config.mysqlConnections,
    limits: { loginIp: limitText(config.limitLoginIp), refreshSession: limitText(config.limitRefreshSession), refreshIp: limitText(config.limitRefreshIp) },
    queueMs: config.hashQueueMs,
    peer: 'not asked for',
  };
}

const limitText = (limit: Limit): string => (limit === null ? 'off' : `${limit.max} per ${limit.windowMs / 1000} s`);

const readMysql = (url: string): Promise<Pick<Facts, 'mysql' | 'durable' | 'bufferPoolMiB'>> =>
  withConnection(url, async (connection) => {
    const [[row]] = await connection.query<(RowDataPacket & { version: string; flush: number; log: number; sync: number; pool: number })[]>(
      'SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flush, @@log_bin AS log, @@sync_binlog AS sync, @@innodb_buffer_pool_size AS pool',
    );
    const { version, flush, log, sync, pool } = row!;
    return { mysql: /mariadb/i.test(version) ? version : `MySQL ${version}`, durable: flush === 1 && (log === 0 || sync === 1), bufferPoolMiB: Math.round(pool / 2 ** 20) };
  });

async function readRedis(url: string): Promise<string> {
  const redis = createRedis(url, createLog('silent'));
  try {
    await redis.connect().catch((error: unknown) => {
      throw new Error(`Redis cannot be reached: ${(error as Error).message}`);
    });
    const info = await redis.info();
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    const name = valkey === undefined ? `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown'}` : `Valkey ${valkey}`;
    return `${name} (${/^aof_enabled:1/m.test(info) ? 'append-only file' : 'no append-only file'})`;
  } finally {
    redis.disconnect();
  }
}

/** The facts in a few lines, as the table is headed by them. */
export const describeFacts = ({ cores, kernel, cpu, memoryGiB, node, mysql, durable, bufferPoolMiB, redis, argon2, mysqlConnections, limits, queueMs, peer, at }: Facts): string =>
  [
    `${cores} cores (${cpu}), ${memoryGiB} GiB, Node ${node.slice(1)}, ${mysql} (${durable ? 'durable commits' : 'commits NOT durable'}, buffer pool ${bufferPoolMiB} MiB), ${redis}`,
    `argon2id ${argon2.memoryKib} KiB, ${argon2.passes} passes, engine ${argon2.engine}, ${argon2.threads} threads, longest wait ${queueMs} ms; ${mysqlConnections} MySQL connections`,
    `limits: logins per address ${limits.loginIp}, refreshes per session ${limits.refreshSession}, per address ${limits.refreshIp}; better-auth ${peer}`,
    `${at.slice(0, 16).replace('T', ' ')} UTC, kernel ${kernel}`,
  ].join('\n');
