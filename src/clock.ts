import type { Mysql } from './store/mysql.js';

/** The time of the database, so that nodes agree and a stepped system clock changes nothing. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  stop(): void;
}

const RESYNC_MS = 30_000;
const SAMPLES = 3;

/** Asks MySQL for the time now and then; between the answers the monotonic clock counts. */
export async function startClock(mysql: Mysql): Promise<Clock> {
  let offset = 0;
  const sync = async (): Promise<void> => {
    // The first answer may have waited for a connection or a preparation: the quickest says best when it was given.
    for (let asked = 0, best = Infinity; asked < SAMPLES; asked += 1) {
      const sent = performance.now();
      const [row] = await mysql.rows<{ now: Date }>('SELECT UTC_TIMESTAMP(3) AS now');
      const took = performance.now() - sent;
      if (took >= best) continue;
      best = took;
      offset = row!.now.getTime() - (sent + took / 2);
    }
  };
  await sync();
  const timer = setInterval(() => void sync().catch(() => undefined), RESYNC_MS);
  timer.unref();
  return { now: () => Math.floor(performance.now() + offset), stop: () => clearInterval(timer) };
}
