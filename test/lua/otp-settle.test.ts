import t from 'tap';
import { codes } from '../support/otp.js';

t.test('a code given back is as good as before: claimable again, its misses still counted', async (t) => {
  const { redis, issue, claim, settle, failures, keys } = await codes(t);
  await issue('right');
  for (let i = 0; i < 3; i += 1) await claim('wrong');
  const goodUntil = await redis.hget(keys.otp, 'goodUntil');
  t.equal(await claim('right', { ticket: 'mine' }), 'claimed');
  t.ok(await settle('mine', 'give back'));
  t.equal(await failures(), 3);
  t.equal(await redis.hget(keys.otp, 'goodUntil'), goodUntil);
  t.equal(await claim('right'), 'claimed');
});

t.test('a spent code is refused, without counting as a guess, and the misses before it are forgotten', async (t) => {
  const { issue, claim, settle, failures } = await codes(t);
  await issue('right');
  await claim('wrong');
  await claim('right', { ticket: 'mine' });
  t.ok(await settle('mine', 'spend'));
  t.equal(await failures(), 0);
  for (let i = 0; i < 9; i += 1) t.equal(await claim('right'), 'refused');
  t.equal(await failures(), 0);
});

t.test('only the claim that stands can be settled: not one that lapsed to another, nor one on a code since replaced', async (t) => {
  const { issue, claim, settle } = await codes(t);
  await issue('first');
  await claim('first', { ticket: 'lapsed', claimMs: 0 });
  t.equal(await claim('first', { ticket: 'standing' }), 'claimed');
  t.notOk(await settle('lapsed', 'give back'));
  t.equal(await claim('first'), 'refused', 'the standing claim was not given back');
  await issue('second');
  t.notOk(await settle('standing', 'spend'));
  t.equal(await claim('second'), 'claimed', 'the newer code was not spent');
});
