import { ApiError } from './errors.js';
import type { Log } from './log.js';

/**
 * Work that goes on after the reply, for endpoints whose reply must not tell, by its time either, what they found.
 * Kept in memory: an orderly stop loses nothing, a crash loses what was asked for within the last moments.
 */
export interface Errands {
  /**
   * Takes work on; it starts a random moment later.
   * @throws ApiError UNAVAILABLE when too much waits
   */
  add(work: () => Promise<void>): void;
  /** Starts what waits at once and settles when all is done. */
  close(): Promise<void>;
}

/** Errands that may wait, and that may run at once. */
const MOST_WAITING = 5000;
const MOST_RUNNING = 8;
/**
 * An errand starts up to so much later, in ms. Starting right after the reply, it would slow down whatever is asked
 * next, and whoever asks next could tell whether there was something to do.
 */
const SPREAD_MS = 250;
/** Waits before the second, third … try while a store is away, in ms. */
const RETRIES_MS = [500, 1000, 2000, 4000];

export function createErrands(log: Log): Errands {
  const resting = new Map<NodeJS.Timeout, () => Promise<void>>();
  const ready: (() => Promise<void>)[] = [];
  let running = 0;
  let rush = (): void => undefined;
  const rushed = new Promise<void>((resolve) => (rush = resolve));
  let closing = false;
  let idle = (): void => undefined;

  function start(): void {
    while (running < MOST_RUNNING && ready.length > 0) {
      running += 1;
      void perform(ready.shift()!).then(() => {
        running -= 1;
        start();
        if (running === 0) idle();
      });
    }
  }

  async function perform(work: () => Promise<void>): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        const wait = RETRIES_MS[tries];
        const away = error instanceof ApiError && error.code === 'UNAVAILABLE';
        if (!away || wait === undefined || closing) return log.error({ err: error }, 'an errand failed: what a client was promised is not done');
        await Promise.race([new Promise((resolve) => setTimeout(resolve, wait)), rushed]);
      }
    }
  }

  return {
    add(work) {
      if (resting.size + ready.length >= MOST_WAITING) throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
      const timer = setTimeout(() => {
        resting.delete(timer);
        ready.push(work);
        start();
      }, Math.random() * SPREAD_MS);
      resting.set(timer, work);
    },
    async close() {
      closing = true;
      rush();
      for (const [timer, work] of resting) {
        clearTimeout(timer);
        ready.push(work);
      }
      resting.clear();
      const done = new Promise<void>((resolve) => (idle = resolve));
      start();
      if (running > 0) await done;
    },
  };
}
