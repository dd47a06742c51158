import { basename } from 'node:path';
import { Piscina } from 'piscina';
import type { Log } from '../log.js';

const WATCH_MS = 500;

export interface ThreadsOptions {
  /** The module that a thread runs. */
  worker: URL;
  threads: number;
  /** Jobs that one thread works on at a time. */
  concurrency: number;
  /** Added to the threads' niceness, so that the front end wins the core. */
  nice: number;
  setup: unknown;
  log: Log;
}

/** A fixed number of worker threads that is kept up: a thread that dies is replaced, and its job goes to another. */
export interface Threads<Job, Result> {
  /** Jobs are pure, so one whose thread died is tried once more. Rejects when that fails as well. */
  run(job: Job): Promise<Result>;
  alive(): number;
  close(): Promise<void>;
}

export function startThreads<Job, Result>(options: ThreadsOptions): Threads<Job, Result> {
  const { threads, log } = options;
  const worker = basename(options.worker.pathname, '.js');
  let short = 0;
  let pool = spawn();

  function spawn(): Piscina {
    const piscina = new Piscina({
      filename: options.worker.href,
      minThreads: threads,
      maxThreads: threads,
      idleTimeout: Infinity,
      concurrentTasksPerWorker: options.concurrency,
      niceIncrement: options.nice,
      workerData: options.setup,
    });
    // Without a listener an error outside a job would end the process.
    piscina.on('error', (error: unknown) => log.error({ worker, err: error }, 'a worker thread failed outside a job'));
    return piscina;
  }

  // Piscina gives up on respawning once a thread fails while it starts; a new pool does not.
  const watch = setInterval(() => {
    short = pool.threads.length < threads ? short + 1 : 0;
    if (short < 2) return;
    log.error({ worker, alive: pool.threads.length, threads }, 'worker threads are missing: starting a new pool');
    const old = pool;
    pool = spawn();
    short = 0;
    // Its jobs fail now, and so find their way to the new pool.
    old.destroy().catch(() => undefined);
  }, WATCH_MS);
  watch.unref();

  const run = (job: Job): Promise<Result> => pool.run(job) as Promise<Result>;
  return {
    async run(job) {
      try {
        return await run(job);
      } catch (error) {
        log.error({ worker, err: error }, 'a worker thread failed in a job: trying once more');
        return run(job);
      }
    },
    alive: () => pool.threads.length,
    async close() {
      clearInterval(watch);
      await pool.destroy();
    },
  };
}
