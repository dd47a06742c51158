import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import { readdirSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { ApiError } from '../../../src/errors.js';
import { createLog } from '../../../src/log.js';
import { createHashing, type Hashing, type ShedReason } from '../../../src/pools/hashing.js';
import { figure, scaled } from '../../support/figures.js';
import { atMost, PATIENCE_MS } from '../../support/patience.js';

const COST = { argon2Engine: 'auto', argon2MemoryKib: 19_456, argon2Passes: 2 } as const;
const shed: Record<ShedReason, number> = { full: 0, late: 0, evicted: 0, gone: 0 };
const allShed = (): number => shed.full + shed.late + shed.evicted;

function hashing(t: Test, settings: { hashThreads?: number; hashQueueMs?: number; argon2MemoryKib?: number; argon2Passes?: number } = {}): Hashing {
  const pool = createHashing({ hashThreads: 2, hashQueueMs: 1000, ...COST, ...settings }, createLog('silent'), { waited: () => undefined, ran: () => undefined, shed: (reason) => (shed[reason] += 1) });
  t.teardown(() => pool.close());
  return pool;
}

const outcomes = async (work: Promise<unknown>[]): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const result of await Promise.allSettled(work)) {
    const word = result.status === 'fulfilled' ? 'done' : (result.reason as ApiError).code;
    counts[word] = (counts[word] ?? 0) + 1;
  }
  return counts;
};

async function allUp(pool: Hashing): Promise<void> {
  for (const started = performance.now(); pool.state().alive < pool.state().threads; ) {
    if (performance.now() - started > PATIENCE_MS) throw new Error(`the pool has not come up: ${JSON.stringify(pool.state())}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

t.test('a password is right for its own hash alone; an unknown account is never right', async (t) => {
  const pool = hashing(t);
  const hash = await pool.hash('a password', { network: 'n' });
  t.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.same(await pool.verify(hash, 'a password', { network: 'n' }), { ok: true, renewed: null, token: null });
  t.same(await pool.verify(hash, 'a passwore', { network: 'n' }), { ok: false, renewed: null, token: null });
  t.same(await pool.verify(null, 'no password has this hash', { network: 'n' }), { ok: false, renewed: null, token: null }, 'not even for the text of the decoy');
});

t.test('a right password of a cheaper hash brings a new one, a wrong one does not', async (t) => {
  const cheap = await hashing(t, { argon2Passes: 1 }).hash('a password', { network: 'n' });
  const pool = hashing(t);
  const { ok, renewed } = await pool.verify(cheap, 'a password', { network: 'n' });
  t.ok(ok);
  t.match(renewed, /m=19456,t=2,/);
  t.same(await pool.verify(renewed, 'a password', { network: 'n' }), { ok: true, renewed: null, token: null });
  t.same(await pool.verify(cheap, 'another', { network: 'n' }), { ok: false, renewed: null, token: null });
});

t.test('a token is signed for the right password alone', async (t) => {
  const pool = hashing(t);
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const job = { alg: 'ES256' as const, kid: 'k', privateKey: await exportPKCS8(privateKey), claims: { sub: 'somebody' } };
  const hash = await pool.hash('a password', { network: 'n' });
  const { token } = await pool.verify(hash, 'a password', { network: 'n' }, job);
  t.match((await jwtVerify(token!, publicKey)).payload, { sub: 'somebody' });
  t.equal((await pool.verify(hash, 'a passwore', { network: 'n' }, job)).token, null);
  t.equal((await pool.verify(null, 'a password', { network: 'n' }, job)).token, null);
});

t.test('a full queue is seen before anything is spent, and a quiet source still finds room', async (t) => {
  const pool = hashing(t, { hashQueueMs: 150 });
  const work = Array.from({ length: 100 }, () => pool.hash('x', { network: 'busy' }));
  for (const ask of ['demand', 'admit'] as const) {
    t.throws(() => pool[ask]({ network: 'busy' }), { code: 'OVERLOADED' });
    t.doesNotThrow(() => pool[ask]({ network: 'quiet' }));
  }
  await outcomes(work);
  t.doesNotThrow(() => pool.admit({ network: 'busy' }));
});

t.test('no more are let in than there is room for, though none of them has come yet', async (t) => {
  const pool = hashing(t, { hashQueueMs: 500 });
  await pool.hash('warm', { network: 'n' });
  const askers = Array.from({ length: 1000 }, () => ({ network: 'burst' }));
  const isLetIn = (asker: { network: string }): boolean => {
    try {
      pool.admit(asker);
      return true;
    } catch {
      return false;
    }
  };
  const letIn = askers.filter(isLetIn);
  t.ok(letIn.length >= 2 && letIn.length < 500, `${letIn.length} let in`);
  t.notOk(isLetIn({ network: 'burst' }));
  t.ok(isLetIn({ network: 'another' }), 'a source that has none there gets in beside one that has many');
  pool.dismiss(letIn.pop()!);
  pool.dismiss(letIn.pop()!);
  t.ok(isLetIn({ network: 'burst' }), 'places that were given back are free');
  const { done = 0 } = await outcomes(letIn.map((asker) => pool.hash('x', asker)));
  t.ok(done > 0, `${done} done`);
  t.ok(isLetIn({ network: 'burst' }), 'who has come needs no place any more');
  t.ok(askers.filter(isLetIn).length > 0);
  t.notOk(isLetIn({ network: 'burst' }));
  await new Promise((resolve) => setTimeout(resolve, 400));
  t.ok(isLetIn({ network: 'burst' }), 'nor does who never comes');
});

t.test('an unknown account costs what a known one costs', async (t) => {
  const pool = hashing(t, { hashThreads: 1 });
  const hash = await pool.hash('a password', { network: 'n' });
  const spent: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] };
  for (let i = 0; i < 60; i += 1) {
    for (const kind of ['known', 'unknown'] as const) {
      const started = performance.now();
      await pool.verify(kind === 'known' ? hash : null, 'a wrong guess', { network: 'n' });
      spent[kind].push(performance.now() - started);
    }
  }
  const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;
  const gap = Math.abs(median(spent.known) - median(spent.unknown));
  t.ok(gap < scaled(6, 2), `medians differ by ${gap.toFixed(2)} ms`);
});

t.test('a full queue refuses at once, with the time it needs to drain', async (t) => {
  const pool = hashing(t, { hashQueueMs: 150 });
  await pool.hash('warm', { network: 'n' });
  const before = allShed();
  const started = performance.now();
  const refused: { ms: number; error: ApiError }[] = [];
  const work = Array.from({ length: 400 }, () =>
    pool.hash('x', { network: 'flood' }).catch((error: unknown) => {
      refused.push({ ms: performance.now() - started, error: error as ApiError });
      throw error;
    }),
  );
  t.ok(pool.state().waiting < 100, `${pool.state().waiting} wait`);
  const { done, OVERLOADED } = await outcomes(work);
  t.equal(done! + OVERLOADED!, 400);
  t.ok(done! >= 4 && OVERLOADED! > 300, `${done} done, ${OVERLOADED} refused`);
  t.equal(allShed() - before, OVERLOADED);
  t.ok(refused.every(({ error }) => error.extras.retryAfter! >= 1));
  const within = refused[200]!.ms;
  figure(t, 'T51', { did: '400 hashes from one source at once', figure: `${done} done, ${OVERLOADED} refused, the 200th of them after ${within.toFixed(1)} ms`, ok: within < atMost(50) && OVERLOADED! > 300 });
  t.ok(performance.now() - started < atMost(1000), 'nobody waited longer than promised by much');
});

t.test('what waits beyond its time is refused when the time is over, not when its turn comes', async (t) => {
  const pool = hashing(t, { hashThreads: 1, hashQueueMs: 40, argon2MemoryKib: 131_072, argon2Passes: 4 });
  // Cheap jobs make it expect that dear ones are cheap too.
  const cheap = await hashing(t, { argon2MemoryKib: 256, argon2Passes: 1 }).hash('a password', { network: 'n' });
  for (let n = 0; n < 150; n += 1) await pool.verify(cheap, 'another', { network: 'n' });
  const before = shed.late;
  const started = performance.now();
  const work = [1, 2].map((n) => pool.hash('x', { network: `n${n}` }));
  await t.rejects(work[1]!, { code: 'OVERLOADED' });
  const refused = performance.now() - started;
  await work[0];
  t.ok(refused >= 40 && refused < performance.now() - started, `refused after ${refused} ms`);
  t.equal(shed.late - before, 1);
});

t.test('one source that floods delays only itself', async (t) => {
  const pool = hashing(t, { hashQueueMs: 300 });
  await allUp(pool);
  const before = shed.evicted;
  const flood = outcomes(Array.from({ length: 500 }, () => pool.hash('x', { network: 'flood' })));
  const others: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    const started = performance.now();
    await pool.hash('x', { network: `other ${i}` });
    others.push(performance.now() - started);
  }
  // What threads have in hand, two batches of eight, is what a newcomer must wait for; a busy machine takes longer for it.
  const fair = atMost(100) + 20 * pool.state().meanRunMs;
  t.ok(Math.max(...others) < fair, `others waited ${others.map(Math.round).join(', ')} ms, ${Math.round(fair)} at most`);
  t.ok((await flood)['OVERLOADED']! > 400);
  t.ok(shed.evicted > before, 'the flood made room for them');
});

t.test('for a client that has left nothing is hashed, and no thread dies', async (t) => {
  const pool = hashing(t);
  await pool.hash('warm', { network: 'n' });
  const before = readdirSync('/proc/self/task').sort().join();
  const gone = shed.gone;
  const leaving = Array.from({ length: 60 }, () => new AbortController());
  const work = leaving.map(({ signal }) => pool.hash('x', { network: 'n', gone: signal }));
  for (const one of leaving) one.abort();
  const { done = 0 } = await outcomes(work);
  t.ok(done <= 2, `${done} were under way already`);
  t.equal(shed.gone - gone, 60 - done);
  const threads = readdirSync('/proc/self/task').sort().join();
  t.equal(threads, before);
  figure(t, 'T51', { did: '60 clients that leave before their hash', figure: `${done} hashed, ${threads === before ? 'the same threads' : 'other threads'} as before`, ok: threads === before && done <= 2 });
  t.same(await outcomes([pool.hash('x', { network: 'n', gone: leaving[0]!.signal })]), { OVERLOADED: 1 });
});

t.test('hashing threads yield to the rest of the process', async (t) => {
  const pool = hashing(t);
  await allUp(pool);
  const niceness = readdirSync('/proc/self/task').map((task) => Number(readFileSync(`/proc/self/task/${task}/stat`, 'utf8').split(') ')[1]!.split(' ')[16]));
  const own = Number(readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')[16]);
  t.ok(niceness.filter((nice) => nice === Math.min(19, own + 10)).length >= 2, niceness.join());
});

t.test('what waits when the pool closes is refused, not forgotten', async (t) => {
  const pool = hashing(t, { hashThreads: 1 });
  const work = outcomes(Array.from({ length: 8 }, () => pool.hash('x', { network: 'n' })));
  await pool.close();
  const { UNAVAILABLE = 0, done = 0 } = await work;
  t.equal(UNAVAILABLE + done, 8);
  t.ok(UNAVAILABLE >= 7);
});
