import { scaled } from './figures.js';

/**
 * A bound of time, in ms. In the table of faults a file has the machine to itself and is held to it; in `npm test` others
 * run beside it, on few cores, and what is late there is no fault: the bound tells only what comes in time from what
 * comes by chance or never.
 */
export const atMost = (ms: number): number => scaled(4 * ms + 1_000, ms);

/** How long a test waits for what must come, when no bound is its subject, in ms. */
export const PATIENCE_MS = 60_000;

/** What some work gave, and how long it took, in ms. */
export async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const started = performance.now();
  const value = await work();
  return { value, ms: performance.now() - started };
}

/** Asks again and again until the answer is right; gives how long that took, in ms, and fails after `mostMs`. */
export async function until(isRight: () => Promise<boolean>, mostMs = PATIENCE_MS): Promise<number> {
  const started = performance.now();
  while (!(await isRight())) {
    if (performance.now() - started > mostMs) throw new Error(`not within ${mostMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return performance.now() - started;
}
