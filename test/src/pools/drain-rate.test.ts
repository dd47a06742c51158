import t from 'tap';
import { DrainRate } from '../../../src/pools/drain-rate.js';

t.test('the first guess is shared by the threads', (t) => {
  const rate = new DrainRate(10, 2);
  t.equal(rate.runMs, 10);
  t.equal(rate.waitMs(6), 30);
  t.end();
});

t.test('runs correct the guess, and without a queue bound how fast it would drain', (t) => {
  const rate = new DrainRate(10, 2);
  for (let n = 0; n < 300; n += 1) rate.done(1, 40, 0, 2);
  t.ok(Math.abs(rate.runMs - 40) < 0.1);
  t.ok(Math.abs(rate.waitMs(1) - 20) < 0.5);
  t.end();
});

t.test('a stall between two jobs counts for four runs at most', (t) => {
  const rate = new DrainRate(10, 1);
  rate.done(1, 10, 1, 1);
  const over = performance.now() + 100;
  while (performance.now() < over);
  rate.done(1, 10, 1, 1);
  t.ok(rate.waitMs(1) <= 10 + 0.05 * 30 + 0.5, `${rate.waitMs(1)}`);
  t.end();
});

t.test('more threads drain it as much faster', (t) => {
  const rate = new DrainRate(12, 1);
  rate.scale(3);
  t.equal(rate.waitMs(1), 4);
  rate.scale(0.5);
  t.equal(rate.waitMs(1), 8);
  t.end();
});
