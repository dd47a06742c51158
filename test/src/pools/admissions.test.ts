import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { Admissions } from '../../../src/pools/admissions.js';

t.test('a place is kept until its asker comes, or until it lapses', async (t) => {
  const admitted = new Admissions<object>(1000);
  const [one, other] = [{}, {}];
  admitted.add(one);
  admitted.add(other);
  t.equal(admitted.count(), 2);
  admitted.delete(one);
  admitted.delete(one);
  t.equal(admitted.count(), 1);
  await pause(1050);
  t.equal(admitted.count(), 0);
});

t.test('an asker has one place, which counts from the last time it was let in', async (t) => {
  const admitted = new Admissions<object>(10_000);
  const one = {};
  admitted.add(one);
  admitted.add(one);
  t.equal(admitted.count(), 1);
  const short = new Admissions<object>(200);
  short.add(one);
  await pause(150);
  short.add({});
  short.add(one);
  t.ok(short.count() >= 1, 'the newest are behind the older ones');
});
