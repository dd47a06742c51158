import { Piscina } from 'piscina';
import type { Log } from '../log.js';

export interface ThreadOptions {
  /** The module that the thread runs. */
  worker: URL;
  /** Jobs that it works on at a time. */
  concurrency: number;
  /** Added to its niceness, so that the front end wins the core. */
  nice: number;
  setup: unknown;
  log: Log;
}

/** A thread that has not answered its first job after so long, in ms, never will. */
const START_MS = 5_000;

/** One worker thread. */
export interface Thread<Job, Result> {
  /** Rejects when the job throws or the thread dies. */
  run(job: Job): Promise<Result>;
  /** Ends the thread; what it is at fails. */
  end(): Promise<void>;
}

/**
 * Starts a pool of one: the number of threads of a Piscina is fixed, and a pool of each size would have to be built
 * anew. `died` is told when the thread ends by itself, before its jobs fail.
 * @throws Error when the system gives no thread
 */
export function startThread<Job, Result>({ worker, concurrency, nice, setup, log }: ThreadOptions, died: () => void): Thread<Job, Result> {
  const pool = new Piscina({
    filename: worker.href,
    minThreads: 1,
    maxThreads: 1,
    idleTimeout: Infinity,
    concurrentTasksPerWorker: concurrency,
    niceIncrement: nice,
    workerData: setup,
    recordTiming: false,
  });
  let isOver = false;
  let first: Promise<unknown> | undefined;
  const destroy = (): Promise<void> => {
    isOver = true;
    return pool.destroy();
  };
  /** Not before it is up: Node 20 aborts the whole process when a thread is ended that still loads its modules. */
  const end = async (): Promise<void> => {
    isOver = true;
    let patience: NodeJS.Timeout | undefined;
    await Promise.race([first, new Promise((resolve) => (patience = setTimeout(resolve, START_MS)))]);
    clearTimeout(patience);
    return destroy();
  };
  // Without a listener an error outside a job would end the process.
  pool.on('error', (error: unknown) => log.error({ err: error }, 'a worker thread failed outside a job'));
  pool.on('workerDestroy', () => {
    if (isOver) return;
    // Piscina would start another by itself, or give up on it: whoever keeps the threads decides.
    destroy().catch(() => undefined);
    died();
  });
  return {
    run(job) {
      const result = pool.run(job) as Promise<Result>;
      first ??= result.catch(() => undefined);
      return result;
    },
    end,
  };
}
