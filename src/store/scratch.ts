import { randomBytes } from 'node:crypto';
import type { Log } from '../log.js';
import { migrate } from './migrate.js';
import { createMysql, type Mysql } from './mysql.js';

/** A database that lives as long as a measurement. */
export interface Scratch {
  url: string;
  /** Inserts 16 to the `digits` accounts with one password hash: `<prefix><n>@example.com`, n from 0. */
  seed(prefix: string, digits: number, passwordHash: string): Promise<void>;
  drop: () => Promise<void>;
}

/** Creates and migrates a database on the server of `url`, for which its user needs the right. */
export async function createScratch(url: string, log: Log): Promise<Scratch> {
  const own = new URL(url);
  const name = `portcullis_tune_${randomBytes(6).toString('hex')}`;
  own.pathname = `/${name}`;
  const on = async (where: string, work: (mysql: Mysql) => Promise<unknown>): Promise<void> => {
    const mysql = createMysql({ url: where, connections: 1, log, statementMs: 60_000 });
    await work(mysql).finally(() => mysql.close());
  };
  await on(url, (mysql) => mysql.run(`CREATE DATABASE ${name}`));
  const drop = (): Promise<void> => on(url, (mysql) => mysql.run(`DROP DATABASE IF EXISTS ${name}`));
  await migrate(own.href).catch(async (error: unknown) => {
    await drop();
    throw error;
  });
  return {
    url: own.href,
    seed: (prefix, digits, passwordHash) => on(own.href, (mysql) => mysql.run(seedOf(digits), [prefix, passwordHash])),
    drop,
  };
}

const DIGIT = `(${Array.from({ length: 16 }, (_, n) => `SELECT ${n} AS n`).join(' UNION ALL ')})`;

function seedOf(digits: number): string {
  const places = Array.from({ length: digits }, (_, place) => ({ name: `d${place}`, worth: 16 ** place }));
  const n = places.map(({ name, worth }) => `${worth} * ${name}.n`).join(' + ');
  return `INSERT INTO users (id, email, password_hash, email_verified_at)
    SELECT UUID(), CONCAT(?, ${n}, '@example.com'), ?, UTC_TIMESTAMP(3) FROM ${places.map(({ name }) => `${DIGIT} ${name}`).join(', ')}`;
}
