import { parentPort, workerData } from 'node:worker_threads';
import { loadArgon2 } from '../../workers/argon2.js';
import type { HashingSetup } from './hashing.js';

const { engine, hash, password } = workerData as HashingSetup;
const argon2 = await loadArgon2(engine);

/** Verifies for so many ms and tells how often. */
async function verifyFor(ms: number): Promise<number> {
  const until = performance.now() + ms;
  let count = 0;
  while (performance.now() < until) {
    if (!(await argon2.verify(hash, password))) throw new Error('the right password was refused');
    count += 1;
  }
  return count;
}

parentPort!.on('message', (ms: number) => void verifyFor(ms).then((count) => parentPort!.postMessage(count)));
parentPort!.postMessage('ready');
