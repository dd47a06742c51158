import { createPool, type PoolConnection, type ResultSetHeader } from 'mysql2';
import { ApiError } from '../errors.js';
import type { Log } from '../log.js';

export type Value = string | number | bigint | boolean | Date | Buffer | null;

/** What a statement may be run on: the pool, or one transaction. */
export interface Queryable {
  /** Runs a prepared statement that gives rows. DATETIME columns come as Date, in UTC. */
  rows<T>(sql: string, values?: Value[]): Promise<T[]>;
  /** Runs a prepared statement that changes rows and gives how many it matched. */
  run(sql: string, values?: Value[]): Promise<{ affected: number; insertId: number }>;
}

export interface Tx extends Queryable {
  readonly inTransaction: true;
}

export interface Mysql extends Queryable {
  /**
   * Runs `work` in one transaction (READ COMMITTED) and commits what it returns; a throw rolls back.
   * A deadlock or lock timeout runs it again, at most 3 times, so it must touch nothing but `tx`.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** How long one statement may take, with the wait for a connection, before the connection is given up, in ms. */
const STATEMENT_MS = 800;
const CONNECT_MS = 800;
const RETRIES = 3;

/** Server error numbers that mean "try again": deadlock, lock wait timeout. */
const RETRYABLE = new Set([1205, 1213]);
/** Server error numbers that mean "down for now": shutdown, too many connections, read-only, a connection that the server saw break. */
const DOWN = new Set([1040, 1053, 1158, 1159, 1160, 1161, 1203, 1290, 1836, 1927, 3024, 1969]);

/** Settles what differs between servers and their configuration, before a connection is used. */
const SESSION = [
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  "SET time_zone = '+00:00', group_concat_max_len = 1048576, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'",
];

export function createMysql(options: { url: string; connections: number; log: Log; statementMs?: number }): Mysql {
  const statementMs = options.statementMs ?? STATEMENT_MS;
  const pool = createPool({
    uri: options.url,
    timezone: 'Z',
    charset: 'utf8mb4',
    supportBigNumbers: true,
    connectionLimit: options.connections,
    maxIdle: options.connections,
    idleTimeout: 60_000,
    queueLimit: 20_000,
    connectTimeout: CONNECT_MS,
    enableKeepAlive: true,
    maxPreparedStatements: 256,
  });
  pool.on('connection', (connection) => {
    connection.on('error', (error: Error) => options.log.debug({ reason: error.message }, 'mysql connection lost'));
    for (const statement of SESSION) {
      connection.query(statement, (error: Error | null) => {
        if (!error) return;
        // A connection that is lost, or was given up while it waited for its turn, says nothing of the server.
        if (isServerError(error) && !isDown(error)) options.log.error({ err: error }, 'a mysql connection could not be set up');
        else options.log.debug({ reason: error.message }, 'mysql connection lost');
        connection.destroy();
      });
    }
  });

  // The callback interface: the promises of mysql2 take a stack trace for every statement.
  function acquire(): Promise<PoolConnection> {
    return new Promise((resolve, reject) => {
      let expired = false;
      const timer = setTimeout(() => {
        expired = true;
        reject(new TimedOut(statementMs));
      }, statementMs);
      pool.getConnection((error, connection) => {
        clearTimeout(timer);
        if (expired) {
          if (!error) connection.release();
        } else if (error) reject(error);
        else resolve(connection);
      });
    });
  }

  // A wait for a connection and the statement it was for share one patience: a client sees their sum.
  const leftOf = (since: number): number => Math.max(1, Math.round(since + statementMs - performance.now()));

  /** One statement: prepared when it has values, plain when it is a word of transaction control. */
  function ask(connection: PoolConnection, ms: number, sql: string, values?: Value[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new TimedOut(ms)), ms);
      const done = (error: Error | null, result: unknown): void => {
        clearTimeout(timer);
        if (error) reject(isServerError(error) ? error : new Lost(error));
        // A connection that is cut in the middle of a reply may end a statement with nothing at all.
        else if (result === undefined) reject(new Lost(new Error('no reply')));
        else resolve(result);
      };
      try {
        if (values) connection.execute(sql, values, done);
        else connection.query(sql, done);
      } catch (error) {
        done(error as Error, undefined);
      }
    });
  }

  const on = (connection: PoolConnection, ms: number): Queryable => ({
    rows: async <T>(sql: string, values: Value[] = []) => (await ask(connection, ms, sql, values)) as T[],
    async run(sql, values = []) {
      const { affectedRows, insertId } = (await ask(connection, ms, sql, values)) as ResultSetHeader;
      return { affected: affectedRows, insertId };
    },
  });

  async function single<T>(work: (on: Queryable) => Promise<T>): Promise<T> {
    const since = performance.now();
    const connection = await acquire().catch(rethrow);
    try {
      const value = await work(on(connection, leftOf(since)));
      connection.release();
      return value;
    } catch (error) {
      if (isDown(error)) connection.destroy();
      else connection.release();
      throw error;
    }
  }

  /** What a server undid because of a deadlock or lock timeout is done again: a statement by itself, a transaction as a whole. */
  async function retried<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        if (!isServerError(error) || !RETRYABLE.has(error.errno) || tries > RETRIES) return rethrow(error);
        await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20 * tries));
      }
    }
  }

  async function attempt<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const since = performance.now();
    const connection = await acquire().catch(rethrow);
    try {
      await ask(connection, leftOf(since), 'START TRANSACTION');
      const value = await work({ ...on(connection, statementMs), inTransaction: true });
      await ask(connection, statementMs, 'COMMIT');
      connection.release();
      return value;
    } catch (error) {
      await rollBack(connection, error);
      throw error;
    }
  }

  async function rollBack(connection: PoolConnection, cause: unknown): Promise<void> {
    try {
      // Nobody knows what a connection answers next after a timeout; the server rolls back when it goes.
      if (isDown(cause)) throw cause;
      await ask(connection, statementMs, 'ROLLBACK');
      connection.release();
    } catch {
      connection.destroy();
    }
  }

  return {
    rows: (sql, values) => retried(() => single((on) => on.rows(sql, values))),
    run: (sql, values) => retried(() => single((on) => on.run(sql, values))),
    transaction: (work) => retried(() => attempt(work)),
    close: () => new Promise((resolve, reject) => pool.end((error) => (error ? reject(error) : resolve()))),
  };
}

/** The connection went, in whatever words the driver says so. */
class Lost extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

class TimedOut extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

interface ServerError extends Error {
  errno: number;
  sqlState: string;
}

const isServerError = (error: unknown): error is ServerError =>
  error instanceof Error && typeof (error as Partial<ServerError>).sqlState === 'string' && (error as ServerError).errno > 0;

/** What the driver's pool says without a code when it takes nobody. */
const POOL_REFUSES = /^(Queue limit reached|Pool is closed)/;

/** A timeout, a lost connection, or a server that says it cannot serve now. */
function isDown(error: unknown): boolean {
  if (error instanceof TimedOut || error instanceof Lost) return true;
  if (isServerError(error)) return DOWN.has(error.errno);
  if (!(error instanceof Error) || error instanceof ApiError) return false;
  // `fatal` alone marks what is said on a connection that has been lost already.
  return 'code' in error || 'fatal' in error || POOL_REFUSES.test(error.message);
}

// Declared as a promise so that it can stand in `catch` of any promise.
function rethrow(error: unknown): Promise<never> {
  const down = isDown(error) || (isServerError(error) && RETRYABLE.has(error.errno));
  return Promise.reject(down ? new ApiError('UNAVAILABLE', { retryAfter: 1 }, { cause: error }) : (error as Error));
}

/** Whether a statement failed because the row exists already. */
export const isDuplicate = (error: unknown): boolean => isServerError(error) && error.errno === 1062;

/** `?, ?, ?` for a list of n values. */
export const marks = (n: number): string => Array.from({ length: n }, () => '?').join(', ');

/** An id as a column of a derived table, in the type of those that it is joined to: in any other no index would be used. */
export const ID_COLUMN = 'CAST(? AS CHAR(36) CHARACTER SET ascii) COLLATE ascii_bin AS id';

/**
 * A derived table `wanted` of so many ids, to start a join from: an IN costs more than half again, since the server
 * makes a range of each value.
 */
export const wanted = (n: number): string => `(${Array.from({ length: n }, () => `SELECT ${ID_COLUMN}`).join(' UNION ALL ')}) wanted`;

/** `(?, ?), (?, ?)` for rows of one width. */
export const tuples = (rows: Value[][]): string => rows.map((row) => `(${marks(row.length)})`).join(', ');

/**
 * The list, lengthened to a power of two by repeating `filler`: a statement is prepared once for each length, on each
 * connection, and so few lengths are enough. Without a filler the last item is repeated, for lists where that changes nothing.
 */
export function padded<T>(items: T[], filler: T = items.at(-1)!): T[] {
  const length = 2 ** Math.ceil(Math.log2(items.length));
  return [...items, ...Array.from({ length: length - items.length }, () => filler)];
}
