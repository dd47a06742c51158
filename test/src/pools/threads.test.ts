import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createLog } from '../../../src/log.js';
import { startThreads, type Threads } from '../../../src/pools/threads.js';
import type { MortalJob } from './mortal.js';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-threads-'));
t.teardown(() => rmSync(folder, { recursive: true }));
const barrier = join(folder, 'barrier');
// Idle threads and the watch over them keep no process alive; here nothing else would.
const awake = setInterval(() => undefined, 1000);
t.teardown(() => clearInterval(awake));

function threads(t: Test, n: number): Threads<MortalJob, number> {
  const pool = startThreads<MortalJob, number>({ worker: new URL('./mortal.js', import.meta.url), threads: n, concurrency: 1, nice: 0, setup: { barrier }, log: createLog('silent') });
  t.teardown(() => pool.close());
  return pool;
}

async function msUntil(condition: () => boolean | Promise<boolean>): Promise<number> {
  const started = performance.now();
  while (!(await condition()) && performance.now() - started < 8000) await new Promise((resolve) => setTimeout(resolve, 20));
  return performance.now() - started;
}

t.test('a job whose thread died is done by another, and jobs of other threads notice nothing', async (t) => {
  const pool = threads(t, 2);
  const jobs = [pool.run({ value: 1, ms: 200 }), pool.run({ value: 2, diesBefore: join(folder, 'first') }), pool.run({ value: 3 }), pool.run({ value: 4 })];
  t.same(await Promise.all(jobs), [1, 2, 3, 4]);
  t.ok((await msUntil(() => pool.alive() === 2)) < 2000, 'back to full size');
});

t.test('a job that kills every thread fails by itself alone', async (t) => {
  const pool = threads(t, 2);
  const deadly = pool.run({ value: 0, deadly: true });
  const others = Array.from({ length: 20 }, (_, value) => pool.run({ value, ms: 5 }));
  await t.rejects(deadly);
  t.same(await Promise.all(others), Array.from({ length: 20 }, (_, value) => value));
  t.ok((await msUntil(() => pool.alive() === 2)) < 2000);
});

t.test('threads that could not start come back once they can', async (t) => {
  const pool = threads(t, 2);
  await pool.run({ value: 1 });
  writeFileSync(barrier, '');
  await t.rejects(pool.run({ value: 0, deadly: true }));
  await t.rejects(pool.run({ value: 0, deadly: true }));
  rmSync(barrier);
  t.ok((await msUntil(() => pool.run({ value: 7 }).then((value) => value === 7, () => false))) < 3000, 'a job is done again');
  t.ok((await msUntil(() => pool.alive() === 2)) < 3000, 'at full size');
});
