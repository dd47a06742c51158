import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';

const FOLDER = new URL('../../../migrations/', import.meta.url);
const LEDGER = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INT NOT NULL,
  name VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  checksum CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  applied_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),
  PRIMARY KEY (version)
) ENGINE = InnoDB`;

interface Migration {
  version: number;
  name: string;
  sql: string;
  checksum: string;
}

/** The migrations of the project, in order; their numbers have no gap. */
export function readMigrations(): Migration[] {
  const files = readdirSync(fileURLToPath(FOLDER)).filter((name) => name.endsWith('.sql')).sort();
  return files.map((name, index) => {
    const version = Number(name.slice(0, 4));
    if (version !== index + 1) throw new Error(`migrations/${name} is out of order: expected number ${index + 1}`);
    const sql = readFileSync(new URL(name, FOLDER), 'utf8');
    return { version, name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
  });
}

/**
 * Applies what the ledger does not have yet and gives the names applied. One node migrates at a time; a statement
 * that a crash left half way is written so that it can run again.
 * @throws when an applied migration was edited, when the database is ahead of this version, or when another node migrates for too long
 */
export async function migrate(url: string): Promise<string[]> {
  return locked(url, async (connection) => {
    await connection.query(LEDGER);
    const applied: string[] = [];
    for (const migration of pending(await readLedger(connection))) {
      for (const statement of statements(migration.sql)) await connection.query(statement);
      await connection.query('INSERT INTO schema_migrations (version, name, checksum) VALUES (?, ?, ?)', [migration.version, migration.name, migration.checksum]);
      applied.push(migration.name);
    }
    return applied;
  });
}

/**
 * Names of the migrations that `migrate` would apply, once no node is at it. Changes nothing, so that the service
 * needs no right to create tables.
 * @throws like migrate
 */
export const pendingMigrations = (url: string): Promise<string[]> => locked(url, async (connection) => pending(await readLedger(connection)).map((migration) => migration.name));

type Ledger = Map<number, string>;

/** Longest wait for another node that migrates, in s. */
const LOCK_S = 60;

async function locked<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await createConnection({ uri: url, timezone: 'Z', charset: 'utf8mb4' });
  try {
    // Locks belong to the whole server, names have 64 characters at most.
    const [[lock]] = await connection.query<(RowDataPacket & { taken: number | null })[]>("SELECT GET_LOCK(CONCAT('portcullis migrate ', LEFT(SHA2(DATABASE(), 256), 32)), ?) AS taken", [LOCK_S]);
    if (lock?.taken !== 1) throw new Error(`another node has been migrating this database for ${LOCK_S} s`);
    return await work(connection);
  } finally {
    // The lock goes with the connection.
    await connection.end();
  }
}

async function readLedger(connection: Connection): Promise<Ledger> {
  try {
    const [rows] = await connection.query<(RowDataPacket & { version: number; checksum: string })[]>('SELECT version, checksum FROM schema_migrations');
    return new Map(rows.map((row) => [row.version, row.checksum]));
  } catch (error) {
    if ((error as { errno?: number }).errno === NO_SUCH_TABLE) return new Map();
    throw error;
  }
}

const NO_SUCH_TABLE = 1146;

function pending(ledger: Ledger): Migration[] {
  const known = readMigrations();
  if (Math.max(...ledger.keys()) > known.length) throw new Error('the database was migrated by a newer version of Portcullis');
  return known.filter((migration) => {
    const checksum = ledger.get(migration.version);
    if (checksum !== undefined && checksum !== migration.checksum) throw new Error(`migrations/${migration.name} was edited after it had been applied`);
    return checksum === undefined;
  });
}

/** Statements of a file: they end with a semicolon at the end of a line. */
const statements = (sql: string): string[] =>
  sql
    .split(/;\s*$/m)
    .map((part) => part.replace(/^\s*--.*$/gm, '').trim())
    .filter((part) => part !== '');
