import { basename } from 'node:path';
import { availableParallelism } from 'node:os';
import { whyNoThread } from './memory.js';
import { startThread, type Thread, type ThreadOptions } from './thread.js';

export interface ThreadsOptions<Job> extends ThreadOptions {
  threads: number;
  /** A job without work: a thread that has answered it is up. */
  probe: Job;
  /** Memory that a thread takes, in bytes: while the machine has less, none is added to those there are. */
  memory: number;
  /** Told when a thread has come up. */
  up?: () => void;
}

/** So many worker threads, kept up: one that dies is replaced, and its jobs go to another. */
export interface Threads<Job, Result> {
  /**
   * Jobs wait in their order for a thread with room. They are pure, so one whose thread died is tried once more.
   * Rejects when that fails as well, or when no thread is there and none can be started.
   */
  run(job: Job): Promise<Result>;
  /** Starts what is missing, or has the idle ones end now and the others after their jobs. */
  resize(threads: number): void;
  size(): number;
  /** Threads that are up, without those that are about to end. */
  alive(): number;
  /** Threads that still end their jobs and get no others. */
  ending(): number;
  close(): Promise<void>;
}

interface Member<Job, Result> {
  thread: Thread<Job, Result>;
  jobs: number;
  isUp: boolean;
}

interface Waiting<Job, Result> {
  job: Job;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** After a start that failed so long passes before the next, in ms. */
const RETRY_MS = 500;
/** Each start keeps a core busy for a while; those that serve already shall not suffer. */
const STARTS_AT_ONCE = Math.max(2, availableParallelism());

export function startThreads<Job, Result>(options: ThreadsOptions<Job>): Threads<Job, Result> {
  type One = Member<Job, Result>;
  const { log, concurrency } = options;
  const worker = basename(options.worker.pathname, '.js');
  const members = new Set<One>();
  const leaving = new Set<One>();
  const waiting: Waiting<Job, Result>[] = [];
  let size = options.threads;
  let alive = 0;
  let isClosed = false;
  let isShort = false;
  let retry: NodeJS.Timeout | undefined;

  /** Brings the members up to the size, a few at a time. */
  function fill(): void {
    while (!isClosed && !retry && members.size < size && members.size - alive < STARTS_AT_ONCE) {
      const back = leaving.values().next().value;
      const reason = back ? null : whyNoThread(members.size > 0 ? options.memory : null);
      if (back) welcome(back);
      else if (reason !== null) fallShort(new Error(reason));
      else add();
    }
  }

  function add(): void {
    try {
      const member: One = { thread: startThread<Job, Result>(options, () => lose(member)), jobs: 0, isUp: false };
      members.add(member);
      member.thread.run(options.probe).then(() => welcome(member), (error: unknown) => discard(member, error));
    } catch (error) {
      fallShort(error);
    }
  }

  /** A thread is up, or is wanted again after all. */
  function welcome(member: One): void {
    if (!members.has(member) && !leaving.delete(member)) return;
    members.add(member);
    member.isUp = true;
    alive += 1;
    if (alive === size && isShort) {
      isShort = false;
      log.info({ worker, threads: size }, 'worker threads are complete again');
    }
    dispatch();
    options.up?.();
    fill();
  }

  /** A thread could not start, or was dismissed meanwhile. */
  function discard(member: One, error: unknown): void {
    if (!members.delete(member)) return;
    member.thread.end().catch(() => undefined);
    fallShort(error);
  }

  /** A thread has ended by itself. One that was not up yet is told of by its probe. */
  function lose(member: One): void {
    leaving.delete(member);
    if (!member.isUp || !members.delete(member)) return;
    alive -= 1;
    log.error({ worker, alive, threads: size }, 'a worker thread has ended: another is started');
    fill();
  }

  function fallShort(error: unknown): void {
    if (!isShort) log.error({ worker, alive, threads: size, err: error }, 'a worker thread cannot start: tried again until it can');
    isShort = true;
    retry ??= setTimeout(() => {
      retry = undefined;
      fill();
    }, RETRY_MS).unref();
    // With nobody there and nobody coming, what waits would wait for ever.
    if (members.size === 0) for (const { reject } of waiting.splice(0)) reject(error);
  }

  function dismiss(member: One): void {
    members.delete(member);
    if (member.isUp) alive -= 1;
    if (member.jobs > 0) leaving.add(member);
    else member.thread.end().catch(() => undefined);
  }

  function dispatch(): void {
    while (waiting.length > 0) {
      const member = freest();
      if (!member) return;
      const { job, resolve, reject } = waiting.shift()!;
      member.jobs += 1;
      const settled = (): void => {
        member.jobs -= 1;
        if (member.jobs === 0 && leaving.delete(member)) member.thread.end().catch(() => undefined);
        dispatch();
      };
      member.thread.run(job).then(
        (result) => (settled(), resolve(result)),
        (error: unknown) => (settled(), reject(error)),
      );
    }
  }

  function freest(): One | null {
    let found: One | null = null;
    for (const member of members) if (member.isUp && member.jobs < (found?.jobs ?? concurrency)) found = member;
    return found;
  }

  const attempt = (job: Job): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (isClosed) return reject(new Error('the threads are closed'));
      waiting.push({ job, resolve, reject });
      dispatch();
    });

  fill();
  return {
    async run(job) {
      try {
        return await attempt(job);
      } catch (error) {
        log.error({ worker, err: error }, 'a worker thread failed in a job: trying once more');
        return attempt(job);
      }
    },
    resize(threads) {
      size = threads;
      const idlest = [...members].sort((a, b) => Number(a.isUp) - Number(b.isUp) || a.jobs - b.jobs);
      for (const member of idlest.slice(0, Math.max(0, members.size - size))) dismiss(member);
      fill();
    },
    size: () => size,
    alive: () => alive,
    ending: () => leaving.size,
    async close() {
      isClosed = true;
      clearTimeout(retry);
      const all = [...members, ...leaving];
      members.clear();
      for (const { reject } of waiting.splice(0)) reject(new Error('the threads are closed'));
      await Promise.all(all.map(({ thread }) => thread.end()));
    },
  };
}
