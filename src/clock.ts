import type { Mysql } from './store/mysql.js';

/** The time of the database, so that nodes agree and a stepped system clock changes nothing. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  stop(): void;
}

const RESYNC_MS = 30_000;

/** Asks MySQL for the time now and then; between the answers the monotonic clock counts. */
export async function startClock(mysql: Mysql): Promise<Clock> {
  let offset = 0;
  const sync = async (): Promise<void> => {
    const sent = performance.now();
    const [row] = await mysql.rows<{ now: Date }>('SELECT UTC_TIMESTAMP(3) AS now');
    offset = row!.now.getTime() - (sent + performance.now()) / 2;
  };
  await sync();
  const timer = setInterval(() => void sync().catch(() => undefined), RESYNC_MS);
  timer.unref();
  return { now: () => Math.floor(performance.now() + offset), stop: () => clearInterval(timer) };
}
