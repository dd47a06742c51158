import { parentPort, workerData } from 'node:worker_threads';
import type { Beat } from './metronome.js';

const { start, perSecond, until } = workerData as Beat;
const still = new Int32Array(new SharedArrayBuffer(4));
/** With more beats than this per second several are told at a time, in ms. */
const LEAST_MS = 1;

const now = (): number => performance.timeOrigin + performance.now();

// Atomics.wait wakes within some 50 µs of the time asked for; a timer of Node's rounds to a whole ms.
for (let told = 0; ; ) {
  const next = start + (told * 1000) / perSecond;
  if (next >= until) break;
  const waitMs = Math.max(next - now(), told > 0 && perSecond * LEAST_MS > 1000 ? LEAST_MS : 0);
  if (waitMs > 0) Atomics.wait(still, 0, 0, waitMs);
  const due = Math.floor(((Math.min(now(), until) - start) * perSecond) / 1000) + 1;
  if (due <= told) continue;
  told = due;
  parentPort!.postMessage(due);
}
