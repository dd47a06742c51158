import { Piscina } from 'piscina';
import type { Log } from '../log.js';

const WORKERS = new URL('../../workers/', import.meta.url);
const WATCH_MS = 500;

export interface ThreadsOptions {
  worker: 'hashing' | 'signing';
  threads: number;
  /** Jobs that one thread works on at a time. */
  concurrency: number;
  /** Added to the threads' niceness, so that the front end wins the core. */
  nice: number;
  setup: unknown;
  log: Log;
}

/** A fixed number of worker threads that is kept up: a thread that dies fails its own job and is replaced. */
export interface Threads {
  /** Rejects only when the thread of this job died. */
  run<Job, Result>(job: Job): Promise<Result>;
  alive(): number;
  close(): Promise<void>;
}

export function startThreads(options: ThreadsOptions): Threads {
  const { worker, threads, log } = options;
  let short = 0;
  let pool = spawn();

  function spawn(): Piscina {
    const piscina = new Piscina({
      filename: new URL(`${worker}.js`, WORKERS).href,
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
    old.close().catch(() => undefined);
  }, WATCH_MS);
  watch.unref();

  return {
    run: (job) => pool.run(job) as Promise<never>,
    alive: () => pool.threads.length,
    async close() {
      clearInterval(watch);
      await pool.destroy();
    },
  };
}
