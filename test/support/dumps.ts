import { Redis } from 'ioredis';
import type { Connection, RowDataPacket } from 'mysql2/promise';

/** Rows of one table, and keys of one server, that are read at most. */
const MOST = 5_000;
/** A server that does not answer, say because a test stopped it, is left alone after so long, in ms. */
const PATIENCE_MS = 500;

/** Every text and every blob of a database as one text; a blob is read as Latin-1. */
export async function mysqlDump(connection: Connection, database: string): Promise<string> {
  const [tables] = await connection.query<RowDataPacket[]>({ sql: 'SHOW TABLES FROM ??', values: [database], rowsAsArray: true });
  let dump = '';
  for (const [table] of tables as unknown as string[][]) {
    const [rows] = await connection.query<RowDataPacket[]>({ sql: 'SELECT * FROM ??.?? LIMIT ?', values: [database, table!, MOST], rowsAsArray: true });
    for (const row of rows as unknown as unknown[][]) dump += row.map(written).join('\n') + '\n';
  }
  return dump;
}

function written(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString('latin1');
  // JSON comes parsed from MySQL; dates and numbers hold nothing.
  return typeof value === 'object' && value !== null && !(value instanceof Date) ? JSON.stringify(value) : '';
}

/** How each kind of value is read whole. A DUMP would not do: it packs texts and turns digits into numbers. */
const READ: Record<string, (key: Buffer) => [string, ...(Buffer | string | number)[]]> = {
  string: (key) => ['get', key],
  hash: (key) => ['hgetall', key],
  list: (key) => ['lrange', key, 0, -1],
  set: (key) => ['smembers', key],
  zset: (key) => ['zrange', key, 0, -1],
  stream: (key) => ['xrange', key, '-', '+'],
};

/** Every key and value of one server as one text; null when it does not answer. */
export async function redisDump(port: number): Promise<string | null> {
  const redis = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null, connectTimeout: PATIENCE_MS, commandTimeout: PATIENCE_MS, enableReadyCheck: false, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined);
  // Of what has expired meanwhile there is nothing, of what another node of a cluster serves an error.
  const all = async (commands: [string, ...(Buffer | string | number)[]][]): Promise<unknown[]> => (commands.length === 0 ? [] : ((await redis.pipeline(commands).exec()) ?? []).map(([error, value]) => (error ? null : value)));
  try {
    await redis.connect();
    let dump = '';
    let [cursor, seen] = ['0', 0];
    do {
      const [next, keys] = await redis.scanBuffer(cursor, 'COUNT', 1000);
      cursor = next.toString();
      seen += keys.length;
      const types = await all(keys.map((key) => ['type', key]));
      const values = await all(keys.map((key, i) => (READ[String(types[i])] ?? READ['string']!)(key)));
      keys.forEach((key, i) => (dump += `${key.toString('latin1')}\n${JSON.stringify(values[i] ?? '')}\n`));
    } while (cursor !== '0' && seen < MOST);
    return dump;
  } catch {
    return null;
  } finally {
    redis.disconnect();
  }
}
