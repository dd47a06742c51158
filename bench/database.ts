import { randomBytes, randomUUID } from 'node:crypto';
import { createConnection, type Connection } from 'mysql2/promise';
import { migrate } from '../src/store/migrate.js';

/** A database of the bench's own. */
export interface Database {
  url: string;
  /** Creates it, without a table. */
  createEmpty: () => Promise<unknown>;
  /** Creates and migrates it. */
  create: () => Promise<unknown>;
  drop: () => Promise<unknown>;
}

/** Rows per insert. */
const BATCH = 100_000;

/** Names a database on the server of `url`; nothing is done yet, so that its drop can be arranged for first. */
export function ownDatabase(url: string): Database {
  const own = new URL(url);
  const name = `portcullis_bench_${randomBytes(6).toString('hex')}`;
  own.pathname = `/${name}`;
  const admin = (statement: string): Promise<unknown> => withConnection(url, (connection) => connection.query(statement));
  return {
    url: own.href,
    createEmpty: () => admin(`CREATE DATABASE ${name}`),
    create: () => admin(`CREATE DATABASE ${name}`).then(() => migrate(own.href)),
    drop: () => admin(`DROP DATABASE IF EXISTS ${name}`),
  };
}

/** The id of an account, from its number: in the order of their creation, as ids of version 7 are. */
export const userIdOf = (account: number): string => {
  const hex = account.toString(16);
  return `${hex.padStart(8, '0')}-0000-7000-8000-${hex.padStart(12, '0')}`;
};

const ID = "LOWER(CONCAT(LPAD(HEX(n), 8, '0'), '-0000-7000-8000-', LPAD(HEX(n), 12, '0')))";
const DIGITS = `(SELECT 0 n ${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `UNION ALL SELECT ${n}`).join(' ')})`;
/** The numbers from ? to below ?, of which there are BATCH at most. */
const NUMBERS = `(SELECT ? + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n FROM ${DIGITS} e, ${DIGITS} d, ${DIGITS} c, ${DIGITS} b, ${DIGITS} a) numbers WHERE n < ? ORDER BY n`;

/**
 * Inserts accounts that look like real ones: verified, with a profile, a role, a tenant and, if asked for, a session
 * each that nobody uses. All have one password. The server makes the rows, since sending a million takes minutes.
 */
export async function seedAccounts(url: string, count: number, passwordHash: string, withSessions = false): Promise<void> {
  const [role, tenant] = [randomUUID(), randomUUID()];
  await withConnection(url, async (connection) => {
    await connection.query('INSERT INTO roles (id, name, description) VALUES (?)', [[role, 'member', 'Everybody']]);
    await connection.query('INSERT INTO tenants (id, name, slug) VALUES (?)', [[tenant, 'Bench', 'bench']]);
  });
  const fill = (statements: [string, unknown[]][]): Promise<void> =>
    withConnection(url, async (connection) => {
      await connection.query('SET unique_checks = 0, foreign_key_checks = 0');
      for (const [sql, values] of statements) for (let from = 0; from < count; from += BATCH) await connection.query(`${sql} FROM ${NUMBERS}`, [...values, from, Math.min(count, from + BATCH)]);
    });
  await Promise.all([
    fill([[`INSERT INTO users (id, email, password_hash, email_verified_at) SELECT ${ID}, CONCAT('bench-', n, '@example.com'), ?, UTC_TIMESTAMP(3)`, [passwordHash]]]),
    fill([
      [`INSERT INTO profiles (id, user_id, provider, given_name, family_name) SELECT ${ID}, ${ID}, 'local', 'Ada', 'Lovelace'`, []],
      [`INSERT INTO user_roles (user_id, role_id) SELECT ${ID}, ?`, [role]],
      [`INSERT INTO user_tenants (user_id, tenant_id) SELECT ${ID}, ?`, [tenant]],
      ...(withSessions ? [[IDLE_SESSIONS, []] satisfies [string, unknown[]]] : []),
    ]),
  ]);
}

const IDLE_SESSIONS = `INSERT INTO sessions (id, user_id, secret_hash, amr, device, ip_address, expires_at, absolute_expires_at)
  SELECT ${ID}, ${ID}, REPEAT('s', 32), 'pwd', 'portcullis-bench', '198.18.0.1', UTC_TIMESTAMP(3) + INTERVAL 14 DAY, UTC_TIMESTAMP(3) + INTERVAL 30 DAY`;

export async function withConnection<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await createConnection({ uri: url, timezone: 'Z', charset: 'utf8mb4' });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}
