import { randomBytes, randomUUID } from 'node:crypto';
import { createPool, type Pool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import { answer } from '../child.js';
import { ascending, quantile } from '../numbers.js';

export interface SqlSetup {
  url: string;
  connections: number;
}

export interface SqlJob {
  /** `select`: one account by its id. `update`: one conditional rotation of a session, committed. */
  statement: 'select' | 'update';
  inFlight: number;
  warmMs: number;
  measureMs: number;
}

export interface SqlResult {
  perSecond: number;
  p50: number;
  p99: number;
}

const SELECT = 'SELECT id, email, status, created_at FROM users WHERE id = ?';
const UPDATE = 'UPDATE sessions SET generation = generation + 1, secret_hash = ? WHERE id = ? AND generation = ? AND secret_hash = ?';
const INSERT = `INSERT INTO sessions (id, secret_hash, amr, expires_at, absolute_expires_at)
  VALUES (?, ?, 'pwd', UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3) + INTERVAL 1 DAY)`;
/** Accounts that the select draws from. */
const DRAWN = 5_000;

/** Prepared statements and nothing else: no HTTP, no JSON, as many connections as the service keeps. */
answer(async ({ url, connections }: SqlSetup) => {
  const pool = createPool({ uri: url, timezone: 'Z', charset: 'utf8mb4', connectionLimit: connections, maxIdle: connections });
  const [users] = await pool.query<(RowDataPacket & { id: string })[]>(`SELECT id FROM users LIMIT ${DRAWN}`);
  const select = async (): Promise<void> => {
    const { id } = users[Math.floor(Math.random() * users.length)]!;
    const [rows] = await pool.execute<RowDataPacket[]>(SELECT, [id]);
    if (rows.length !== 1) throw new Error('an account was not found');
  };

  return async (job: SqlJob): Promise<SqlResult> => {
    const lines = Array.from({ length: job.inFlight }, () => (job.statement === 'select' ? Promise.resolve(select) : rotation(pool)));
    return measure(await Promise.all(lines), job);
  };
});

/** A session of its own that is rotated at each call. */
async function rotation(pool: Pool): Promise<() => Promise<void>> {
  const id = randomUUID();
  let generation = 0;
  let hash = randomBytes(32);
  await pool.execute(INSERT, [id, hash]);
  return async () => {
    const next = randomBytes(32);
    const [{ affectedRows }] = await pool.execute<ResultSetHeader>(UPDATE, [next, id, generation, hash]);
    if (affectedRows !== 1) throw new Error('a rotation was lost');
    generation += 1;
    hash = next;
  };
}

async function measure(lines: (() => Promise<void>)[], { warmMs, measureMs }: SqlJob): Promise<SqlResult> {
  const from = performance.now() + warmMs;
  const to = from + measureMs;
  const times: number[] = [];
  await Promise.all(
    lines.map(async (run) => {
      for (;;) {
        const began = performance.now();
        if (began >= to) return;
        await run();
        const ended = performance.now();
        if (ended >= from && ended < to) times.push(ended - began);
      }
    }),
  );
  const sorted = ascending(times);
  return { perSecond: sorted.length / (measureMs / 1000), p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}
