import { availableParallelism } from 'node:os';
import type { Config } from '../config/settings.js';
import { ApiError, retrySeconds } from '../errors.js';
import type { Log } from '../log.js';
import type { HashingJob, HashingResult, HashingSetup, SigningJob } from '../../workers/protocol.js';
import { Admissions } from './admissions.js';
import { DrainRate } from './drain-rate.js';
import { FairQueue } from './fair-queue.js';
import { startThreads } from './threads.js';

/** Who asks: the source that shares the queue fairly with others, and whether its client is still there. */
export interface Asker {
  network: string;
  gone?: AbortSignal;
}

export interface Hashing {
  /**
   * Whether the password has the hash; a null hash is never right and costs the same.
   * `renewed` is a new hash when the stored one is cheaper than the setting, `token` what was to be signed:
   * the thread that has found a password right signs at once, which saves a hop.
   * @throws ApiError OVERLOADED when it would wait too long, UNAVAILABLE when its thread died
   */
  verify(hash: string | null, plain: string, asker: Asker, token?: SigningJob | null): Promise<{ ok: boolean; renewed: string | null; token: string | null }>;
  /**
   * Says early what `verify` would say of a full queue, before anything is spent on the login.
   * @throws ApiError OVERLOADED
   */
  demand(asker: Asker): void;
  /** Demands room and keeps a place for the same asker's job, which is to come within moments. */
  admit(asker: Asker): void;
  /** Gives that place back: the job will not come. Otherwise it lapses. */
  dismiss(asker: Asker): void;
  /** A PHC string of argon2id at the cost set now. Fails like verify. */
  hash(plain: string, asker: Asker): Promise<string>;
  /** How long the threads are busy with what waits already, in ms. */
  backlogMs(): number;
  /**
   * Sets the number of threads from now on. What runs is done to its end; threads that come start beside it.
   * `by` is for the log: who wants it.
   * @throws ApiError INVALID_REQUEST when the machine lacks the memory for so many
   */
  resize(threads: number, by: string): void;
  state(): HashingState;
  /** Since the start, in seconds: how long threads were busy, all together, and how long there were threads. */
  times(): { busy: number; threads: number };
  close(): Promise<void>;
}

/** `threads` are wanted, `alive` are up, `ending` do their last jobs; jobs run and wait. */
export interface HashingState {
  threads: number;
  alive: number;
  ending: number;
  running: number;
  waiting: number;
  meanRunMs: number;
}

/**
 * Why a job was not done: the queue was full when it came; its time was over before a thread was free; it gave way
 * to a less busy source; its client had left.
 */
export type ShedReason = 'full' | 'late' | 'evicted' | 'gone';

/** What the pool tells its observer; seconds. */
export interface HashingObserver {
  waited(seconds: number): void;
  ran(seconds: number): void;
  shed(reason: ShedReason): void;
  /** So many jobs went to a thread together. */
  batch?(jobs: number): void;
}

interface Waiting {
  job: HashingJob;
  asker: Asker;
  since: number;
  resolve: (result: HashingResult) => void;
  reject: (error: unknown) => void;
}

/** Jobs are admitted up to this share of the longest wait, since an estimate errs both ways. */
const SHARE = 0.85;
/** Jobs that a thread gets at a time while many wait: their messages and wake-ups are dear beside a hash. */
const MOST_TOGETHER = 8;
/** Jobs whose time is over are looked for no more often than this, in ms. */
const SWEEP_MS = 10;
/** How long a place is kept, in ms: what a login does before its password is checked takes less, even when it waits for others to share statements with. */
const ADMITTED_MS = 300;
const WORKER = new URL('../../workers/hashing.js', import.meta.url);
const NICENESS = 10;
/** What a thread holds beside the memory of its hash, in bytes. */
const THREAD_BYTES = 12 * 2 ** 20;
const MIB = 2 ** 20;

const onCores = (threads: number): number => Math.min(threads, availableParallelism());

/**
 * The hashing threads behind admission control: a job waits only while it can be expected to start within
 * HASH_QUEUE_MS, sources are served in turn, and when the queue is full the busiest source gives way.
 */
export function createHashing(config: Pick<Config, 'hashThreads' | 'hashQueueMs' | 'argon2Engine' | 'argon2MemoryKib' | 'argon2Passes'>, log: Log, observe: HashingObserver): Hashing {
  const { hashQueueMs: patience } = config;
  const setup: HashingSetup = { engine: config.argon2Engine, cost: { memoryKib: config.argon2MemoryKib, passes: config.argon2Passes } };
  const memory = config.argon2MemoryKib * 1024 + THREAD_BYTES;
  const threads = startThreads<HashingJob[], HashingResult[]>({ worker: WORKER, threads: config.hashThreads, concurrency: 1, nice: NICENESS, setup, probe: [], memory, log, up: () => next() });
  const queue = new FairQueue<Waiting>();
  const admitted = new Admissions(ADMITTED_MS);
  let running = 0;
  // 19 MiB, 2 passes take about 10 ms.
  const rate = new DrainRate(Math.max(0.5, (config.argon2MemoryKib * config.argon2Passes) / 4000), config.hashThreads);
  let tickedAt = performance.now();
  const times = { busy: 0, threads: 0 };

  // A thread that still starts gets no job that another could begin sooner.
  const size = (): number => threads.alive() || threads.size();
  /** Whether so many, with those that run, are more than can begin in time. */
  const isTooMany = (jobs: number): boolean => jobs > size() && rate.waitMs(jobs - size()) > patience * SHARE;
  const overloaded = (reason: ShedReason): ApiError => {
    observe.shed(reason);
    return new ApiError('OVERLOADED', { retryAfter: retrySeconds(rate.waitMs(queue.size)) });
  };

  // Nobody is there to read it, and nothing was refused for lack of threads.
  const unheard = (): ApiError => {
    observe.shed('gone');
    return new ApiError('OVERLOADED', { retryAfter: 1 });
  };

  function submit(job: HashingJob, asker: Asker): Promise<HashingResult> {
    return new Promise((resolve, reject) => {
      admitted.delete(asker);
      if (asker.gone?.aborted) return reject(unheard());
      const waiting: Waiting = { job, asker, since: performance.now(), resolve, reject };
      if (running < size() && queue.size === 0) return start([waiting]);
      if (isTooMany(running + queue.size + 1)) {
        const evicted = queue.evictHeaviest(queue.waitingOf(asker.network) + 1);
        if (!evicted) return reject(overloaded('full'));
        evicted.reject(overloaded('evicted'));
      }
      queue.push(asker.network, waiting);
      if (!sweeping) sweepIn(patience);
    });
  }

  function demand({ network }: Asker): void {
    if (!isTooMany(running + queue.size + admitted.count() + 1)) return;
    const own = queue.waitingOf(network) + admitted.of(network) + 1;
    if (!queue.hasHeavier(own) && !admitted.hasHeavier(own)) throw overloaded('full');
  }

  /** Keeps the clocks of `times`: before anything that they depend on changes. */
  function tick(): void {
    const now = performance.now();
    times.busy += (running * (now - tickedAt)) / 1000;
    times.threads += (threads.size() * (now - tickedAt)) / 1000;
    tickedAt = now;
  }

  function start(batch: Waiting[]): void {
    tick();
    running += 1;
    observe.batch?.(batch.length);
    const started = performance.now();
    for (const waiting of batch) observe.waited((started - waiting.since) / 1000);
    run(batch.map((waiting) => waiting.job)).then((results) => {
      const ranMs = (performance.now() - started) / batch.length;
      tick();
      running -= 1;
      rate.done(batch.length, ranMs, queue.size, size());
      batch.forEach((waiting, i) => {
        const result = results[i]!;
        observe.ran(ranMs / 1000);
        if (result.kind !== 'failed') return waiting.resolve(result);
        log.error({ reason: result.reason }, 'a password could not be hashed');
        waiting.reject(new ApiError('UNAVAILABLE', { retryAfter: 1 }));
      });
      next();
    }, () => undefined);
  }

  /** A job that ends its thread, twice, must not take the others of its batch along: each is tried alone then. */
  async function run(jobs: HashingJob[]): Promise<HashingResult[]> {
    const alone = (reason: unknown): HashingResult[] => [{ kind: 'failed', reason: String(reason) }];
    try {
      return await threads.run(jobs);
    } catch (error) {
      return jobs.length === 1 ? alone(error) : (await Promise.all(jobs.map((job) => threads.run([job]).catch(alone)))).flat();
    }
  }

  function next(): void {
    while (running < size()) {
      const batch = take(Math.min(MOST_TOGETHER, Math.max(1, Math.floor(queue.size / (2 * size())))));
      if (batch.length === 0) return;
      start(batch);
    }
  }

  /** Up to so many jobs that somebody still waits for. */
  function take(most: number): Waiting[] {
    const batch: Waiting[] = [];
    while (batch.length < most) {
      const waiting = queue.shift();
      if (!waiting) break;
      if (waiting.asker.gone?.aborted) waiting.reject(unheard());
      else if (performance.now() - waiting.since > patience) waiting.reject(overloaded('late'));
      else batch.push(waiting);
    }
    return batch;
  }

  /** Fair turns can leave a busy source's jobs behind for longer than anyone was promised. Set for the oldest: each wake-up costs those that hash. */
  let sweeping: NodeJS.Timeout | undefined;
  function sweepIn(ms: number): void {
    sweeping = setTimeout(sweep, Math.max(SWEEP_MS, ms));
    sweeping.unref();
  }

  function sweep(): void {
    const now = performance.now();
    let oldest = Infinity;
    const isLate = ({ since }: Waiting): boolean => {
      if (now - since > patience) return true;
      oldest = Math.min(oldest, since);
      return false;
    };
    for (const late of queue.sweep(isLate)) late.reject(overloaded('late'));
    sweeping = undefined;
    if (queue.size > 0) sweepIn(oldest + patience - now);
  }

  return {
    async verify(hash, plain, asker, token = null) {
      const result = await submit({ kind: 'verify', hash, plain, token }, asker);
      if (result.kind !== 'verify') throw new Error('the hashing thread answered another question');
      return { ok: result.ok, renewed: result.renewed, token: result.token };
    },
    demand,
    admit(asker) {
      demand(asker);
      admitted.add(asker);
    },
    dismiss: (asker) => admitted.delete(asker),
    async hash(plain, asker) {
      const result = await submit({ kind: 'hash', plain }, asker);
      if (result.kind !== 'hash') throw new Error('the hashing thread answered another question');
      return result.hash;
    },
    backlogMs: () => rate.waitMs(queue.size),
    resize(wanted, by) {
      const [lacking, free] = [(wanted - threads.size()) * memory, process.availableMemory()];
      if (lacking > free) throw new ApiError('INVALID_REQUEST', { errors: [{ path: '/threads', message: `must be less: so many need ${Math.ceil(lacking / MIB)} MiB more, and ${Math.floor(free / MIB)} MiB are free` }] });
      // The queue drains as much faster or slower as there are threads, but for those that share a core.
      rate.scale(onCores(wanted) / onCores(threads.size()));
      tick();
      log.info({ by, from: threads.size(), to: wanted }, 'the hashing pool is resized');
      threads.resize(wanted);
      next();
    },
    times() {
      tick();
      return { ...times };
    },
    state: () => ({ threads: threads.size(), alive: threads.alive(), ending: threads.ending(), running, waiting: queue.size, meanRunMs: rate.runMs }),
    async close() {
      clearTimeout(sweeping);
      for (const waiting of queue.sweep(() => true)) waiting.reject(new ApiError('UNAVAILABLE', { retryAfter: 1 }));
      await threads.close();
    },
  };
}
