import { Redis } from 'ioredis';
import t from 'tap';
import { loadScripts } from '../../src/store/scripts.js';
import { ownRedis } from '../support/stores.js';

const { url } = await ownRedis(t);
const redis = new Redis(url);
t.teardown(() => redis.disconnect());
const scripts = loadScripts(redis);

const POLICY = { threshold: 3, quietMs: 60_000, delaysMs: [0], locksMs: [400, 800] };
let names = 0;
let tickets = 0;

/** The keys of an account: its bucket of everybody, and those of two familiar sources. */
function account() {
  const tag = `{${(names += 1)}}`;
  const keys = (source: string) => ({ bucket: `idp:${tag}:gate:${source}`, held: `idp:${tag}:held:${source}`, all: `idp:${tag}:gate:all` });
  const enter = (source = 'all', more: { holdMs?: number; storedMs?: number; storedStep?: number; keepMs?: number } = {}) => {
    const ticket = String((tickets += 1));
    return scripts.loginReserve(keys(source), { ticket, threshold: 3, holdMs: 30_000, storedMs: 0, storedStep: 0, keepMs: 0, ...more }).then((verdict) => ({ ...verdict, ticket }));
  };
  const settle = (ticket: string, outcome: 'release' | 'success' | 'failure', source = 'all', policy = {}) => scripts.loginSettle(keys(source), { ticket, outcome, ...POLICY, ...policy });
  const fail = async (source = 'all') => settle((await enter(source)).ticket, 'failure', source);
  return { keys, enter, settle, fail, outcome: async (source = 'all') => (await enter(source)).outcome };
}
const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

t.test('no more guesses are verified at once than may still fail', async (t) => {
  const { enter, settle, outcome } = account();
  const first = await Promise.all(Array.from({ length: 50 }, () => enter()));
  const entered = first.filter((one) => one.outcome === 'entered');
  t.equal(entered.length, 3);
  t.equal(first.filter((one) => one.outcome === 'full').length, 47);
  await settle(entered[0]!.ticket, 'failure');
  t.equal(await outcome(), 'full', 'a failure takes the slot with it');
  await settle(entered[1]!.ticket, 'release');
  t.equal(await outcome(), 'entered', 'a ticket that was given back is free again');
});

t.test('locks grow by their steps, the last repeats, and each further failure locks', async (t) => {
  const { fail, outcome } = account();
  t.same([await fail(), await fail()].map(({ allLockMs }) => allLockMs), [0, 0]);
  let step = 0;
  for (const ms of [400, 800, 800]) {
    t.match(await fail(), { ownLockMs: ms, allLockMs: ms, ownStep: (step += 1), allStep: step, delayMs: 0 });
    t.equal(await outcome(), 'locked');
    await pause(ms + 5);
  }
  const { enter } = account();
  t.equal((await enter()).outcome, 'entered');
});

t.test('what was under way when a lock fell neither extends nor counts, and a success then is refused', async (t) => {
  const { enter, settle, keys } = account();
  const [a, b, c] = await Promise.all([enter(), enter(), enter()]);
  await settle(a.ticket, 'failure', 'all', { threshold: 1 });
  const until = await redis.hget(keys('all').bucket, 'lockedUntil');
  t.match(await settle(b.ticket, 'failure'), { ownLockMs: 0, delayMs: 0, held: true });
  t.equal(await redis.hget(keys('all').bucket, 'lockedUntil'), until);
  t.equal(await redis.hget(keys('all').bucket, 'failures'), '1');
  const late = await settle(c.ticket, 'success');
  t.ok(late.lockedMs > 0);
  t.equal(await redis.exists(keys('all').bucket), 1, 'and clears nothing');
});

t.test('failures of a familiar source count in both buckets, its success clears both but no lock of the other', async (t) => {
  const { enter, settle, fail, keys, outcome } = account();
  await fail('home');
  t.equal(await redis.hget(keys('home').bucket, 'failures'), '1');
  t.equal(await redis.hget(keys('home').all, 'failures'), '1');
  await settle((await enter('home')).ticket, 'success', 'home');
  t.equal(await redis.exists(keys('home').bucket, keys('home').all), 0);
  for (let i = 0; i < 3; i += 1) await fail();
  t.equal(await outcome('home'), 'entered', 'the lock of everybody else does not reach it');
  await settle((await enter('home')).ticket, 'success', 'home');
  t.equal(await outcome(), 'locked');
});

t.test('a ticket lapses; a success on it is void and a failure still counts', async (t) => {
  const { enter, settle, keys } = account();
  const { ticket } = await enter('all', { holdMs: 30 });
  await pause(40);
  await enter();
  t.match(await settle(ticket, 'success'), { held: false });
  await settle(ticket, 'failure');
  t.equal(await redis.hget(keys('all').bucket, 'failures'), '1');
});

t.test('a lock that only MySQL knows is honoured, before a delay is', async (t) => {
  const { enter, settle } = account();
  t.match(await enter('all', { storedMs: 1234 }), { outcome: 'locked', retryMs: 1234, recorded: true });
  await settle((await enter()).ticket, 'failure', 'all', { delaysMs: [5000] });
  t.match(await enter(), { outcome: 'throttled' });
  t.match(await enter('all', { storedMs: 1234 }), { outcome: 'locked' });
});

t.test('a lock counts as recorded once it stands in MySQL, and a new lock anew', async (t) => {
  const { enter, fail, keys } = account();
  const { bucket, all } = keys('all');
  for (let i = 0; i < 3; i += 1) await fail();
  t.match(await enter(), { outcome: 'locked', recorded: false });
  t.equal(await scripts.loginRecorded({ bucket, all }, {}), 2);
  t.match(await enter(), { outcome: 'locked', recorded: true });
  await pause(405);
  await fail();
  t.match(await enter(), { outcome: 'locked', recorded: false });
  t.equal(await scripts.loginRecorded({ bucket: 'idp:{none}:gate:all', all: 'idp:{none}:gate:all' }, {}), 0, 'nothing is made up for buckets that are gone');
});

t.test('what MySQL remembers of a lock that Redis lost is taken up: the lock stands, then one guess locks by the next step', async (t) => {
  const { enter, settle, keys, outcome } = account();
  const { bucket } = keys('all');
  const remembered = { storedMs: 300, storedStep: 1, keepMs: 5000 };
  t.match(await enter('all', remembered), { outcome: 'locked', recorded: true });
  const ttl = await redis.pttl(bucket);
  t.ok(ttl > 4000 && ttl <= 5000, 'for as long as it would have been remembered');
  t.equal(await outcome(), 'locked', 'in Redis too from now on');
  await pause(305);
  const over = { ...remembered, storedMs: 0 };
  const { ticket } = await enter('all', over);
  t.equal((await enter('all', over)).outcome, 'full', 'one guess at a time');
  t.match(await settle(ticket, 'failure'), { ownLockMs: 800, ownStep: 2, allStep: 2 });
  t.match(await enter('all', over), { outcome: 'locked', recorded: false }, 'what MySQL remembers does not overwrite what Redis knows');
  t.equal(await redis.hget(bucket, 'locks'), '2');
});

t.test('failures that Redis counted since it lost a lock stay counted', async (t) => {
  const { enter, fail, keys } = account();
  await fail();
  await enter('all', { storedStep: 3, keepMs: 5000 });
  t.same(await redis.hmget(keys('all').bucket, 'failures', 'locks'), ['3', '3']);
});

t.test('every key has a life from its first write on', async (t) => {
  const { enter, settle, fail, keys } = account();
  await fail('home');
  await enter('home');
  for (const key of [keys('home').bucket, keys('home').held, keys('home').all]) t.ok((await redis.pttl(key)) > 0, key);
  await settle('none', 'release', 'home');
  t.ok((await redis.pttl(keys('home').held)) > 0);
});
