import { Redis } from 'ioredis';
import t from 'tap';
import { loadScripts } from '../../src/store/scripts.js';
import { figure } from '../support/figures.js';
import { ownRedis } from '../support/stores.js';

const { url } = await ownRedis(t);
const redis = new Redis(url);
t.teardown(() => redis.disconnect());
const scripts = loadScripts(redis);
let tickets = 0;
const hit = (window: string, max: number, windowMs: number) => scripts.rateLimit({ window }, { max, windowMs, ticket: String((tickets += 1)) });
const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

t.test('of any number at once exactly max are let through, and the refused do not count', async (t) => {
  const verdicts = await Promise.all(Array.from({ length: 200 }, () => hit('idp:{a}:limit:x', 7, 60_000)));
  t.equal(verdicts.filter(({ allowed }) => allowed).length, 7);
  t.equal(await redis.zcard('idp:{a}:limit:x'), 7);
  const { retryMs } = verdicts.at(-1)!;
  t.ok(retryMs > 59_000 && retryMs <= 60_000);
});

t.test('no window of the length ever holds more than max, at its edges neither', async (t) => {
  const windowMs = 300;
  const taken: { from: number; to: number }[] = [];
  for (const until = performance.now() + 1500; performance.now() < until; ) {
    const from = performance.now();
    if ((await hit('idp:{b}:limit:x', 5, windowMs)).allowed) taken.push({ from, to: performance.now() });
  }
  t.ok(taken.length >= 20, `${taken.length} taken`);
  // Redis counted each somewhere between the two moments that are known here.
  const over = taken.filter(({ to }, i) => i >= 5 && to - taken[i - 5]!.from < windowMs).length;
  figure(t, 'T11', { did: `a limit of 5 in ${windowMs} ms hammered for 1.5 s`, figure: `${taken.length} let through, ${over} windows with more than 5`, ok: over === 0 });
});

t.test('retryMs says when the next place is free, to the millisecond', async (t) => {
  const fill = async (window: string): Promise<number> => {
    for (let i = 0; i < 3; i += 1) await hit(window, 3, 400);
    return (await hit(window, 3, 400)).retryMs;
  };
  await pause((await fill('idp:{c}:limit:x')) + 1);
  t.ok((await hit('idp:{c}:limit:x', 3, 400)).allowed, 'not later');
  const started = performance.now();
  const retryMs = await fill('idp:{e}:limit:x');
  const filled = performance.now();
  while (!(await hit('idp:{e}:limit:x', 3, 400)).allowed);
  t.ok(performance.now() - started >= retryMs - 1 && retryMs > 400 - (filled - started) - 1, 'not earlier');
});

t.test('a window lives no longer than its newest entry', async (t) => {
  await hit('idp:{d}:limit:x', 3, 150);
  t.ok((await redis.pttl('idp:{d}:limit:x')) <= 150);
  await pause(200);
  t.equal(await redis.exists('idp:{d}:limit:x'), 0);
});
