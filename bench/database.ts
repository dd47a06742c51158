import { randomBytes, randomUUID } from 'node:crypto';
import { createConnection, type Connection } from 'mysql2/promise';
import { migrate } from '../src/store/migrate.js';
import { emailOf } from './load/job.js';

/** A database of the bench's own. */
export interface Database {
  url: string;
  /** Creates and migrates it. */
  create: () => Promise<unknown>;
  drop: () => Promise<unknown>;
}

/** Rows per insert. */
const BATCH = 1_000;

/** Names a database on the server of `url`; nothing is done yet, so that its drop can be arranged for first. */
export function ownDatabase(url: string): Database {
  const own = new URL(url);
  const name = `portcullis_bench_${randomBytes(6).toString('hex')}`;
  own.pathname = `/${name}`;
  const admin = (statement: string): Promise<unknown> => withConnection(url, (connection) => connection.query(statement));
  return {
    url: own.href,
    create: () => admin(`CREATE DATABASE ${name}`).then(() => migrate(own.href)),
    drop: () => admin(`DROP DATABASE IF EXISTS ${name}`),
  };
}

/** Inserts accounts that look like real ones: verified, with a profile, a role and a tenant. All have one password. */
export function seedAccounts(url: string, count: number, passwordHash: string): Promise<void> {
  return withConnection(url, async (connection) => {
    const [role, tenant] = [randomUUID(), randomUUID()];
    await connection.query('INSERT INTO roles (id, name, description) VALUES (?)', [[role, 'member', 'Everybody']]);
    await connection.query('INSERT INTO tenants (id, name, slug) VALUES (?)', [[tenant, 'Bench', 'bench']]);
    const now = new Date();
    for (let from = 0; from < count; from += BATCH) {
      const batch = Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => ({ id: randomUUID(), email: emailOf(from + n) }));
      await connection.query('INSERT INTO users (id, email, password_hash, email_verified_at) VALUES ?', [batch.map(({ id, email }) => [id, email, passwordHash, now])]);
      await connection.query('INSERT INTO profiles (id, user_id, provider, given_name, family_name) VALUES ?', [batch.map(({ id }) => [randomUUID(), id, 'local', 'Ada', 'Lovelace'])]);
      await connection.query('INSERT INTO user_roles (user_id, role_id) VALUES ?', [batch.map(({ id }) => [id, role])]);
      await connection.query('INSERT INTO user_tenants (user_id, tenant_id) VALUES ?', [batch.map(({ id }) => [id, tenant])]);
    }
  });
}

export async function withConnection<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await createConnection({ uri: url, timezone: 'Z', charset: 'utf8mb4' });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}
