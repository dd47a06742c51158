import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { ApiError } from '../../../src/errors.js';
import { createLog } from '../../../src/log.js';
import { createHashing, type Hashing } from '../../../src/pools/hashing.js';
import { atMost, PATIENCE_MS } from '../../support/patience.js';

const NICENESS = 10;
// Idle threads keep no process alive; here nothing else would.
const awake = setInterval(() => undefined, 1000);
t.teardown(() => clearInterval(awake));

function hashing(t: Test, settings: { hashThreads?: number; hashQueueMs?: number; argon2MemoryKib?: number } = {}): Hashing {
  const config = { hashThreads: 2, hashQueueMs: 60_000, argon2Engine: 'auto', argon2MemoryKib: 4096, argon2Passes: 1, ...settings } as const;
  const pool = createHashing(config, createLog('silent'), { waited: () => undefined, ran: () => undefined, shed: () => undefined });
  t.teardown(() => pool.close());
  return pool;
}

const niceOf = (stat: string): number => Number(stat.split(') ').at(-1)!.split(' ')[16]);
const wanted = Math.min(19, niceOf(readFileSync('/proc/self/stat', 'utf8')) + NICENESS);

/** Threads of this process with the niceness of the hashing ones, as the system counts them. */
function threadsSeen(): number {
  return readdirSync('/proc/self/task').filter((task) => {
    try {
      return niceOf(readFileSync(`/proc/self/task/${task}/stat`, 'utf8')) === wanted;
    } catch {
      return false;
    }
  }).length;
}

async function until(condition: () => boolean, ms = PATIENCE_MS): Promise<number> {
  const started = performance.now();
  while (!condition() && performance.now() - started < ms) await new Promise((resolve) => setTimeout(resolve, 5));
  return performance.now() - started;
}

/** Keeps jobs coming, so many at a time, and counts how each ended. */
function load(pool: Hashing, atOnce: number): { ended: Record<string, number>; stop: () => Promise<void> } {
  const ended: Record<string, number> = {};
  let isOn = true;
  const lines = Array.from({ length: atOnce }, async (_, n) => {
    while (isOn) {
      const word = await pool.hash('a password', { network: `n${n % 7}` }).then(() => 'done', (error: unknown) => (error as ApiError).code);
      ended[word] = (ended[word] ?? 0) + 1;
      if (word !== 'done') await turn();
    }
  });
  const stop = async (): Promise<void> => {
    isOn = false;
    await Promise.all(lines);
  };
  return { ended, stop };
}

t.test('a pool grows and shrinks under load and loses no job; the system has the threads that the state tells of', async (t) => {
  const pool = hashing(t);
  const { ended, stop } = load(pool, 64);
  for (const threads of [5, 1, 8, 2, 3, 1]) {
    pool.resize(threads, 'a test');
    t.equal(pool.state().threads, threads, 'at once');
    await until(() => pool.state().alive === threads && pool.state().ending === 0 && threadsSeen() === threads);
    t.match(pool.state(), { threads, alive: threads, ending: 0 });
    t.equal(threadsSeen(), threads);
    const before = ended['done'] ?? 0;
    await until(() => (ended['done'] ?? 0) > before + 30);
    t.ok(ended['done']! > before + 30, 'and jobs go on');
    t.ok(pool.state().running <= threads);
  }
  await stop();
  t.same(Object.keys(ended), ['done'], JSON.stringify(ended));
  t.match(pool.state(), { running: 0, waiting: 0 });
});

t.test('sizes that follow each other faster than threads start lose nothing either, and the last one counts', async (t) => {
  const pool = hashing(t);
  const { ended, stop } = load(pool, 32);
  for (let n = 0; n < 60; n += 1) {
    pool.resize(1 + ((n * 5) % 7), 'a test');
    await new Promise((resolve) => setTimeout(resolve, n % 6));
  }
  pool.resize(3, 'a test');
  await until(() => pool.state().alive === 3 && threadsSeen() === 3);
  await stop();
  t.match(pool.state(), { threads: 3, alive: 3, ending: 0, running: 0, waiting: 0 });
  t.equal(threadsSeen(), 3);
  t.same(Object.keys(ended), ['done'], JSON.stringify(ended));
});

t.test('a thread that is to go does its job to the end, and gets no other', async (t) => {
  const pool = hashing(t, { argon2MemoryKib: 65_536 });
  await until(() => pool.state().alive === 2);
  const jobs = [1, 2, 3, 4].map((n) => pool.hash('a password', { network: `n${n}` }));
  pool.resize(1, 'a test');
  t.match(pool.state(), { threads: 1, alive: 1, ending: 1, running: 2, waiting: 2 });
  await Promise.race(jobs);
  for (const hash of await Promise.all(jobs)) t.match(hash, /^\$argon2id\$/);
  await until(() => threadsSeen() === 1);
  t.equal(threadsSeen(), 1);
  t.match(pool.state(), { threads: 1, alive: 1, ending: 0 });
});

t.test('jobs need not wait for the threads that start, and those need no jobs to come up', async (t) => {
  const pool = hashing(t);
  await until(() => pool.state().alive === 2);
  pool.resize(6, 'a test');
  await pool.hash('a password', { network: 'n' });
  t.ok(pool.state().alive < 6, 'done before all were up');
  t.ok((await until(() => pool.state().alive === 6)) < atMost(2000));
});

t.test('after a resize the wait is estimated for the new size', async (t) => {
  const pool = hashing(t, { hashThreads: availableParallelism() });
  const { stop } = load(pool, 64);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const before = pool.backlogMs() / pool.state().waiting;
  pool.resize(1, 'a test');
  const after = pool.backlogMs() / pool.state().waiting;
  await stop();
  t.ok(Math.abs(after / before / availableParallelism() - 1) < 0.01, `${before} ms, then ${after} ms a job`);
});

t.test('a size that the machine has no memory for is refused in words, and nothing changes', async (t) => {
  const pool = hashing(t, { hashThreads: 1, argon2MemoryKib: 2 ** 14 });
  t.throws(() => pool.resize(2 ** 16, 'a test'), { code: 'INVALID_REQUEST', extras: { errors: [{ path: '/threads', message: /^must be less: so many need \d+ MiB more, and \d+ MiB are free$/ }] } }, 'a test');
  t.equal(pool.state().threads, 1);
});
