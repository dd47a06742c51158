import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { scaled } from '../support/figures.js';
import { flushEvery } from '../support/keyspace.js';
import { codes, count, times } from '../support/otp.js';

const GUESSES = scaled(300, 1_000);

t.test(`of ${GUESSES} wrong codes at once exactly five are checked, and then the right one is refused too`, async (t) => {
  const { issue, claim, failures } = await codes(t);
  await issue('right');
  const outcomes = await times(GUESSES, () => claim('wrong'));
  t.equal(count(outcomes, 'refused'), 5);
  t.equal(count(outcomes, 'locked'), GUESSES - 5);
  t.equal(await failures(), 5);
  t.equal(await claim('right'), 'locked');
});

t.test('of 100 callers with the right code one gets it, and the others do not count as guesses', async (t) => {
  const { issue, claim, failures } = await codes(t);
  await issue('right');
  const outcomes = await times(100, () => claim('right'));
  t.equal(count(outcomes, 'claimed'), 1);
  t.equal(count(outcomes, 'refused'), 99);
  t.equal(await failures(), 0);
});

t.test('a claim whose node died lapses: the code is good again', async (t) => {
  const { issue, claim } = await codes(t);
  await issue('right');
  t.equal(await claim('right', { claimMs: 500 }), 'claimed');
  t.equal(await claim('right'), 'refused');
  await sleep(510);
  t.equal(await claim('right'), 'claimed');
});

t.test('an attempt without any code counts like a wrong one', async (t) => {
  const { claim } = await codes(t);
  const outcomes = [];
  for (let i = 0; i < 6; i += 1) outcomes.push(await claim('wrong'));
  t.same(outcomes, ['refused', 'refused', 'refused', 'refused', 'refused', 'locked']);
});

t.test('misses are forgotten and a lock ends so long after the last miss; a lock is not extended by attempts', async (t) => {
  const { redis, issue, claim, failures, keys } = await codes(t);
  await issue('right');
  for (let i = 0; i < 5; i += 1) await claim('wrong', { lockMs: 800 });
  await sleep(400);
  t.equal(await claim('wrong', { lockMs: 800 }), 'locked');
  await sleep(410);
  t.equal(await claim('wrong', { lockMs: 800 }), 'refused');
  t.equal(await failures(), 1);
  t.equal(await claim('right'), 'claimed');
  t.ok((await redis.pttl(keys.otp)) > 0);
});

t.test('the right code ends the code of the other purpose and leaves its misses', async (t) => {
  const { redis, issue, claim, keys } = await codes(t);
  await issue('restore-code', { otp: keys.other });
  await redis.hset(keys.other, 'failures', 3);
  await issue('right');
  await claim('wrong');
  t.equal(await redis.hget(keys.other, 'codeHash'), 'restore-code');
  t.equal(await claim('right'), 'claimed');
  t.same(await redis.hgetall(keys.other), { failures: '3' });
});

t.test('a lost Redis has lost code and misses together', async (t) => {
  const { redis, issue, claim, failures } = await codes(t);
  await issue('right');
  for (let i = 0; i < 4; i += 1) await claim('wrong');
  await flushEvery(redis);
  t.equal(await claim('right'), 'refused');
  t.equal(await failures(), 1);
});
