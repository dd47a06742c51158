import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createLog } from '../../../src/log.js';
import { startThreads, type Threads } from '../../../src/pools/threads.js';
import type { MortalJob } from './mortal.js';
import { figure } from '../../support/figures.js';
import { atMost, PATIENCE_MS } from '../../support/patience.js';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-threads-'));
t.teardown(() => rmSync(folder, { recursive: true }));
const barrier = join(folder, 'barrier');
// Idle threads and the watch over them keep no process alive; here nothing else would.
const awake = setInterval(() => undefined, 1000);
t.teardown(() => clearInterval(awake));

function threads(t: Test, n: number, memory = 0): Threads<MortalJob, number> {
  const pool = startThreads<MortalJob, number>({ worker: new URL('./mortal.js', import.meta.url), threads: n, concurrency: 1, nice: 0, setup: { barrier }, probe: { value: 0 }, memory, log: createLog('silent') });
  t.teardown(() => pool.close());
  return pool;
}

async function msUntil(condition: () => boolean | Promise<boolean>): Promise<number> {
  const started = performance.now();
  while (!(await condition()) && performance.now() - started < PATIENCE_MS) await new Promise((resolve) => setTimeout(resolve, 20));
  return performance.now() - started;
}

t.test('a job whose thread died is done by another, and jobs of other threads notice nothing', async (t) => {
  const pool = threads(t, 2);
  const jobs = [pool.run({ value: 1, ms: 200 }), pool.run({ value: 2, diesBefore: join(folder, 'first') }), pool.run({ value: 3 }), pool.run({ value: 4 })];
  t.same(await Promise.all(jobs), [1, 2, 3, 4]);
  t.ok((await msUntil(() => pool.alive() === 2)) < atMost(2000), 'back to full size');
});

t.test('a job that kills every thread fails by itself alone', async (t) => {
  const pool = threads(t, 2);
  const deadly = pool.run({ value: 0, deadly: true });
  const others = Array.from({ length: 20 }, (_, value) => pool.run({ value, ms: 5 }));
  await t.rejects(deadly);
  const done = await Promise.all(others);
  t.same(done, Array.from({ length: 20 }, (_, value) => value));
  const ms = await msUntil(() => pool.alive() === 2);
  figure(t, 'T52', { did: 'a job that kills every thread it comes to, 20 others beside it', figure: `${20 - done.length} others lost, full size after ${ms.toFixed(0)} ms`, ok: done.length === 20 && ms < atMost(2000) });
});

t.test('a thread that dies after or amid a resize fails its own job alone, and is replaced up to the size set now', async (t) => {
  const pool = threads(t, 1);
  await pool.run({ value: 1 });
  for (const size of [4, 2, 3]) {
    pool.resize(size);
    const others = Array.from({ length: 12 }, (_, value) => pool.run({ value, ms: 5 }));
    const [deadly, lucky] = [pool.run({ value: 0, deadly: true }), pool.run({ value: 7, diesBefore: join(folder, `size ${size}`) })];
    await t.rejects(deadly);
    t.equal(await lucky, 7);
    t.same(await Promise.all(others), Array.from({ length: 12 }, (_, value) => value));
    t.ok((await msUntil(() => pool.alive() === size)) < atMost(2000));
    t.equal(pool.size(), size);
  }
});

t.test('a job whose thread dies when it was about to go is done by another, and no thread comes for it', async (t) => {
  const pool = threads(t, 3);
  await msUntil(() => pool.alive() === 3);
  const jobs = [pool.run({ value: 1, ms: 300 }), pool.run({ value: 2, ms: 300 }), pool.run({ value: 3, ms: 50, diesBefore: join(folder, 'late') })];
  pool.resize(1);
  t.equal(pool.ending(), 2);
  t.same(await Promise.all(jobs), [1, 2, 3]);
  await msUntil(() => pool.ending() === 0);
  t.same([pool.alive(), pool.size()], [1, 1]);
});

t.test('threads that were to go stay when more are wanted before they have gone', async (t) => {
  const pool = threads(t, 3);
  await msUntil(() => pool.alive() === 3);
  const jobs = [1, 2, 3].map((value) => pool.run({ value, ms: 200 }));
  pool.resize(1);
  pool.resize(3);
  t.same([pool.alive(), pool.ending()], [3, 0]);
  t.same(await Promise.all(jobs), [1, 2, 3]);
  t.same(await Promise.all([4, 5, 6].map((value) => pool.run({ value }))), [4, 5, 6]);
});

t.test('without the memory for more, a pool serves with the threads that it has', async (t) => {
  const pool = threads(t, 2, 2 ** 60);
  t.equal(await pool.run({ value: 1 }), 1);
  t.same([pool.alive(), pool.size()], [1, 2], 'the first starts in any case');
  pool.resize(5);
  t.same(await Promise.all([2, 3].map((value) => pool.run({ value }))), [2, 3]);
  t.equal(pool.alive(), 1);
});

t.test('what waits when no thread can start fails instead of waiting', async (t) => {
  writeFileSync(barrier, '');
  const pool = threads(t, 2);
  await t.rejects(pool.run({ value: 1 }));
  rmSync(barrier);
  t.ok((await msUntil(() => pool.alive() === 2)) < atMost(3000));
  t.equal(await pool.run({ value: 2 }), 2);
});

t.test('threads that could not start come back once they can', async (t) => {
  const pool = threads(t, 2);
  await pool.run({ value: 1 });
  writeFileSync(barrier, '');
  await t.rejects(pool.run({ value: 0, deadly: true }));
  await t.rejects(pool.run({ value: 0, deadly: true }));
  rmSync(barrier);
  t.ok((await msUntil(() => pool.run({ value: 7 }).then((value) => value === 7, () => false))) < atMost(3000), 'a job is done again');
  t.ok((await msUntil(() => pool.alive() === 2)) < atMost(3000), 'at full size');
});
