import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { Admissions } from '../../../src/pools/admissions.js';

const asker = (network: string): { network: string } => ({ network });

t.test('a place is kept until its asker comes, or until it lapses', async (t) => {
  const admitted = new Admissions(1000);
  const [one, other] = [asker('a'), asker('a')];
  admitted.add(one);
  admitted.add(other);
  t.equal(admitted.count(), 2);
  admitted.delete(one);
  admitted.delete(one);
  t.equal(admitted.count(), 1);
  t.equal(admitted.of('a'), 1);
  await pause(1050);
  t.equal(admitted.count(), 0);
  t.equal(admitted.of('a'), 0);
});

t.test('an asker has one place, which counts from the last time it was let in', (t) => {
  const admitted = new Admissions(60_000);
  const one = asker('a');
  admitted.add(one);
  admitted.add(one);
  t.equal(admitted.count(), 1);
  t.equal(admitted.of('a'), 1);
  t.end();
});

t.test('places are told apart by source', (t) => {
  const admitted = new Admissions(60_000);
  for (let n = 0; n < 3; n += 1) admitted.add(asker('busy'));
  admitted.add(asker('quiet'));
  t.equal(admitted.of('busy'), 3);
  t.equal(admitted.of('quiet'), 1);
  t.equal(admitted.of('nobody'), 0);
  t.ok(admitted.hasHeavier(2));
  t.notOk(admitted.hasHeavier(3));
  t.end();
});
