import { availableParallelism, cpus, release, totalmem } from 'node:os';
import type { RowDataPacket } from 'mysql2/promise';
import { loadArgon2 } from '../workers/argon2.js';
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
  redis: string;
  argon2: { engine: string; memoryKib: number; passes: number; threads: number };
  mysqlConnections: number;
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
  };
}

const readMysql = (url: string): Promise<Pick<Facts, 'mysql' | 'durable'>> =>
  withConnection(url, async (connection) => {
    const [[row]] = await connection.query<(RowDataPacket & { version: string; flush: number; log: number; sync: number })[]>(
      'SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flush, @@log_bin AS log, @@sync_binlog AS sync',
    );
    const { version, flush, log, sync } = row!;
    return { mysql: /mariadb/i.test(version) ? version : `MySQL ${version}`, durable: flush === 1 && (log === 0 || sync === 1) };
  });

async function readRedis(url: string): Promise<string> {
  const redis = createRedis(url, createLog('silent'));
  try {
    await redis.connect().catch((error: unknown) => {
      throw new Error(`Redis cannot be reached: ${(error as Error).message}`);
    });
    const info = await redis.info('server');
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    return valkey === undefined ? `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown'}` : `Valkey ${valkey}`;
  } finally {
    redis.disconnect();
  }
}

/** The facts in a few lines, as the table is headed by them. */
export const describeFacts = ({ cores, kernel, cpu, memoryGiB, node, mysql, durable, redis, argon2, mysqlConnections, at }: Facts): string =>
  [
    `${cores} cores (${cpu}), ${memoryGiB} GiB, Node ${node.slice(1)}, ${mysql} (${durable ? 'durable commits' : 'commits NOT durable'}), ${redis}`,
    `argon2id ${argon2.memoryKib} KiB, ${argon2.passes} passes, engine ${argon2.engine}, ${argon2.threads} threads; ${mysqlConnections} MySQL connections`,
    `${at.slice(0, 16).replace('T', ' ')} UTC, kernel ${kernel}`,
  ].join('\n');
