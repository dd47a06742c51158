import { Worker } from 'node:worker_threads';

/** Times in ms since the epoch. */
export interface Beat {
  start: number;
  until: number;
  perSecond: number;
}

/**
 * Tells how many beats are due by now, each time that one is; ends with the last.
 * A thread of its own keeps the time, so that a beat is not late because the loop had no timer to wake it.
 */
export function keepTime(perSecond: number, from: number, to: number, onDue: (due: number) => void): Promise<void> {
  const workerData: Beat = { start: performance.timeOrigin + from, until: performance.timeOrigin + to, perSecond };
  const thread = new Worker(new URL('./metronome-thread.js', import.meta.url), { workerData });
  thread.on('message', onDue);
  return new Promise((resolve, reject) => {
    thread.once('error', reject);
    thread.once('exit', () => resolve());
  });
}
