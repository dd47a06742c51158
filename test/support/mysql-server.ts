import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConnection, type Connection } from 'mysql2/promise';
import { migrate } from '../../src/store/migrate.js';
import type { Teardown } from './stores.js';

const DEV = new URL('../../../dev/', import.meta.url);
const DATABASE = 'service';

/** What dev/mysql.mjs gives. */
interface Daemon {
  pid: number;
  url: string;
  stop: () => Promise<void>;
  ended: Promise<string>;
}

type StartMysql = (plan: { program: object; home: string; secrets: object; durable: boolean; bufferPool: string; onPort: (port: number) => void }) => Promise<Daemon>;

/** A MySQL of its own, so that a test may kill, stop and configure it. An answered commit survives a kill. */
export interface OwnMysql {
  /** Of a user who may do anything to one migrated database and nothing to the server, as a service should be. */
  url: string;
  /** As somebody who may do anything. */
  admin: (sql: string) => Promise<Record<string, unknown>[]>;
  /** Another connection like that, closed at the end. */
  connect: () => Promise<Connection>;
  /** Stops it for a while with SIGSTOP, or lets it go on with SIGCONT. */
  signal: (signal: 'SIGSTOP' | 'SIGCONT') => void;
  /** kill -9, and waits until it is gone. */
  kill: () => Promise<void>;
  /** Starts it again on its port and data; is done when it takes connections. */
  restart: () => Promise<void>;
}

/** Starts the program of MYSQLD, or the one that this machine has; null when there is none. */
export async function ownMysql(t: Teardown): Promise<OwnMysql | null> {
  const { findProgram } = (await import(new URL('programs.mjs', DEV).href)) as { findProgram: (kind: 'mysql') => Promise<object | null> };
  const { startMysql } = (await import(new URL('mysql.mjs', DEV).href)) as { startMysql: StartMysql };
  const program = await findProgram('mysql');
  if (!program) return null;
  const home = mkdtempSync(join(tmpdir(), 'portcullis-mysql-'));
  const secrets: { user: string; password: string; rootPassword: string; port?: number } = { user: 'admin', password: 'of the tests', rootPassword: 'of the tests' };
  const start = (): Promise<Daemon> => startMysql({ program, home, secrets, durable: true, bufferPool: '64M', onPort: (port) => (secrets.port = port) });
  let daemon = await start();
  t.teardown(async () => {
    await daemon.stop();
    rmSync(home, { recursive: true, force: true });
  });
  const adminUrl = new URL(daemon.url);
  const connect = async (): Promise<Connection> => {
    const connection = await createConnection({ uri: adminUrl.href });
    t.teardown(() => connection.destroy());
    return connection;
  };
  const admin = async (sql: string): Promise<Record<string, unknown>[]> => {
    const connection = await createConnection({ uri: adminUrl.href });
    try {
      return (await connection.query(sql))[0] as Record<string, unknown>[];
    } finally {
      connection.destroy();
    }
  };
  await admin(`CREATE DATABASE ${DATABASE}`);
  await admin("CREATE USER 'service'@'127.0.0.1' IDENTIFIED BY 'of the service'");
  await admin(`GRANT ALL ON ${DATABASE}.* TO 'service'@'127.0.0.1'`);
  const url = `mysql://service:${encodeURIComponent('of the service')}@${adminUrl.host}/${DATABASE}`;
  await migrate(url);
  return {
    url,
    admin,
    connect,
    signal: (signal) => void process.kill(daemon.pid, signal),
    kill: async () => {
      process.kill(daemon.pid, 'SIGKILL');
      await daemon.ended;
    },
    restart: async () => {
      daemon = await start();
    },
  };
}
