import t from 'tap';
import { chanceOfWait, choose, p99At, perSecondElsewhere, perSecondUndisturbed, rateWithin, type Cell } from '../../../../src/cli/tune/capacity.js';

const cell = (values: Partial<Cell> & { memoryKib?: number }): Cell => ({
  cost: { memoryKib: values.memoryKib ?? 19_456, passes: 2 },
  threads: 2,
  perSecond: 200,
  aloneMs: 9,
  cpu: null,
  idle: 0,
  ...values,
});

t.test('the chance of a wait is that of the tables for M/M/c', (t) => {
  t.ok(Math.abs(chanceOfWait(0.5, 1) - 0.5) < 1e-9, 'one server: its utilisation');
  t.ok(Math.abs(chanceOfWait(1, 2) - 1 / 3) < 1e-9);
  t.ok(Math.abs(chanceOfWait(8, 10) - 0.40918) < 1e-4);
  t.ok(Math.abs(chanceOfWait(1.999, 2) - 1) < 1e-3);
  t.ok(chanceOfWait(200, 256) < 1e-3, 'and many servers do not overflow');
  t.end();
});

t.test('the wait is what a simulated queue shows: logins at random moments, equal work', (t) => {
  for (const [threads, share] of [[1, 0.5], [2, 0.7], [2, 0.9], [8, 0.85]] as const) {
    const perSecond = threads * 100;
    const [rate, workMs] = [share * perSecond, 10];
    const free = new Array<number>(threads).fill(0);
    const times: number[] = [];
    let [now, seed] = [0, 42];
    // Always the same moments (mulberry32).
    const random = (): number => {
      seed = (seed + 0x6d2b79f5) | 0;
      let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
      return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
    };
    for (let n = 0; n < 200_000; n += 1) {
      now += (-Math.log(1 - random()) * 1000) / rate;
      free.sort((a, b) => a - b);
      const start = Math.max(now, free[0]!);
      free[0] = start + workMs;
      times.push(start - now);
    }
    const seen = times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!;
    // Beside the wait in the queue, two statements wait for company, three quarters as long.
    const waited = (p99At(rate, { threads, perSecond, aloneMs: workMs }) - workMs) / 2.5;
    t.ok(Math.abs(waited - seen) < 0.15 * seen + 1, `${threads} threads, ${share} busy: calculated ${waited.toFixed(1)} ms, simulated ${seen.toFixed(1)} ms`);
  }
  t.end();
});

t.test('the highest rate within a target is just within it, and never beyond capacity', (t) => {
  for (const targetMs of [15, 50, 250, 5000]) {
    const rate = rateWithin(targetMs, cell({}));
    t.ok(rate > 0 && rate < 200);
    t.ok(p99At(rate, cell({})) <= targetMs && p99At(rate + 1, cell({})) > targetMs, `${rate.toFixed(1)}/s within ${targetMs} ms`);
  }
  t.equal(rateWithin(8, cell({})), 0, 'a login alone takes 9 ms');
  t.equal(p99At(200, cell({})), Infinity);
  t.end();
});

t.test('the quickest is recommended; of equals the one with the fewest threads', (t) => {
  const cells = [cell({ perSecond: 200 }), cell({ perSecond: 300, memoryKib: 7168, threads: 3 }), cell({ perSecond: 298, memoryKib: 7168, threads: 2 }), cell({ perSecond: 297, memoryKib: 9216, threads: 2 })];
  t.equal(choose(cells, { targetMs: 250, loginsPerS: null })?.cell, cells[3], 'and then the one with the most memory');
  t.equal(choose(cells, { targetMs: 250, loginsPerS: null })?.isEnough, true);
  t.end();
});

t.test('for a rate that was wished for, the most memory that reaches it is recommended', (t) => {
  const cells = [cell({ perSecond: 120, memoryKib: 47_104 }), cell({ perSecond: 200 }), cell({ perSecond: 210, threads: 3 }), cell({ perSecond: 300, memoryKib: 7168 })];
  t.equal(choose(cells, { targetMs: 250, loginsPerS: 90 })?.cell, cells[0]);
  t.equal(choose(cells, { targetMs: 250, loginsPerS: 150 })?.cell, cells[1]);
  t.match(choose(cells, { targetMs: 250, loginsPerS: 1000 }), { cell: cells[3], isEnough: false });
  t.equal(choose(cells, { targetMs: 5, loginsPerS: null }), null, 'nothing is that quick');
  t.end();
});

t.test('without stores and clients on the machine, their share of the cores is for logins', (t) => {
  const cpu = { hash: 7000, service: 1000, load: 500, stores: 1000, others: 500 };
  t.equal(perSecondElsewhere(cell({ perSecond: 200, cpu })), 250);
  t.equal(perSecondElsewhere(cell({ perSecond: 140, threads: 1, cpu, idle: 0.3 })), 140, 'when the threads are too few it changes nothing');
  t.equal(perSecondElsewhere(cell({ perSecond: 280, cpu: { ...cpu, service: 100 } })), 2e6 / 7000, 'never more than the threads can hash');
  t.equal(perSecondElsewhere(cell({})), null);
  t.equal(perSecondUndisturbed(cell({ perSecond: 20, cpu: { ...cpu, others: 90_000 } }), 2), 2e6 / 9500, 'and what others take is for logins when they rest');
  t.equal(perSecondUndisturbed(cell({ perSecond: 20, threads: 1, cpu }), 2), 1e6 / 7000);
  t.end();
});
