import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { answer } from '../child.js';

/** What each thread verifies over and over. */
export interface HashingSetup {
  threads: number;
  nice: number;
  engine: 'auto' | 'node-rs' | 'reference';
  hash: string;
  password: string;
}

export interface HashingJob {
  warmMs: number;
  measureMs: number;
}

export interface HashingResult {
  perSecond: number;
  /** CPU time per verify, in µs. */
  cpuUs: number;
}

/** Threads that only verify: no queue, no messages, nothing else under way. The limit of any login. */
answer(async (setup: HashingSetup) => {
  // Threads inherit it: the same niceness that the service gives its own.
  setPriority(setup.nice);
  const threads = Array.from({ length: setup.threads }, () => new Worker(new URL('./hashing-thread.js', import.meta.url), { workerData: setup }));
  // Nobody listens for errors: a thread that fails ends this program, and the bench with it.
  const told = (thread: Worker): Promise<number> => new Promise((resolve) => thread.once('message', resolve));
  const round = async (ms: number): Promise<number> => {
    const counts = threads.map(told);
    for (const thread of threads) thread.postMessage(ms);
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };
  await Promise.all(threads.map(told));

  return async ({ warmMs, measureMs }: HashingJob): Promise<HashingResult> => {
    await round(warmMs);
    const [began, used] = [performance.now(), process.cpuUsage()];
    const count = await round(measureMs);
    const { user, system } = process.cpuUsage(used);
    return { perSecond: count / ((performance.now() - began) / 1000), cpuUs: (user + system) / count };
  };
});
