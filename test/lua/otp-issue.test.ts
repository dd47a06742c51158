import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { codes } from '../support/otp.js';

t.test('a code is good for its lifetime and no longer', async (t) => {
  const { issue, claim, settle } = await codes(t);
  await issue('code', { ttlMs: 500 });
  t.equal(await claim('code', { ticket: 'early' }), 'claimed');
  t.ok(await settle('early', 'give back'));
  await sleep(510);
  t.equal(await claim('code'), 'refused');
});

t.test('a new code replaces the one before, whatever had become of it', async (t) => {
  const { issue, claim, settle } = await codes(t);
  await issue('first');
  await issue('second');
  t.equal(await claim('first'), 'refused');
  t.equal(await claim('second', { ticket: 'held' }), 'claimed');
  await issue('third');
  t.equal(await claim('third', { ticket: 'spent' }), 'claimed', 'the claim on the second does not stand in its way');
  t.ok(await settle('spent', 'spend'));
  await issue('fourth');
  t.equal(await claim('fourth'), 'claimed');
});

t.test('a new code is no new chance: failed attempts stay counted, and a lock stands', async (t) => {
  const { issue, claim } = await codes(t);
  await issue('first');
  for (let i = 0; i < 4; i += 1) t.equal(await claim('wrong'), 'refused');
  await issue('second');
  t.equal(await claim('wrong'), 'refused');
  t.equal(await claim('second'), 'locked');
  await issue('third');
  t.equal(await claim('third'), 'locked');
});

t.test('an account has so many issues in any window, over both purposes; one too many changes nothing', async (t) => {
  const { issue, claim, keys } = await codes(t);
  const few = { maxIssues: 3, windowMs: 800 };
  t.ok(await issue('other', { ...few, otp: keys.other }));
  t.ok(await issue('first', few));
  t.ok(await issue('second', few));
  t.notOk(await issue('third', few));
  t.equal(await claim('third'), 'refused');
  t.equal(await claim('second'), 'claimed');
  await sleep(810);
  t.ok(await issue('fourth', few));
});

t.test('every key lapses: the code with its lifetime, unless misses are remembered for longer', async (t) => {
  const { redis, issue, claim, keys } = await codes(t);
  await issue('code', { ttlMs: 1000, windowMs: 5000 });
  t.ok((await redis.pttl(keys.otp)) <= 1000);
  t.ok((await redis.pttl(keys.issues)) <= 5000);
  await claim('wrong', { lockMs: 9000 });
  await issue('code', { ttlMs: 1000 });
  const left = await redis.pttl(keys.otp);
  t.ok(left > 8000 && left <= 9000);
});
