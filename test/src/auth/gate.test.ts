import t from 'tap';
import { codeOf, counted, lockOut, pause, strangers, tally, timed, WRONG } from '../../support/attempts.js';
import { startApp, type TestApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { figure } from '../../support/figures.js';
import { everyKey, flushEvery } from '../../support/keyspace.js';
import { atMost } from '../../support/patience.js';

// Delays of 50, 100 and 200 ms; locks of 0.6, 1.2 and 1.8 s.
const { app, client, account } = await startApp(t, { LOGIN_DELAYS_S: '0.05,0.1,0.2', LOCKOUT_MINUTES: '0.01,0.02,0.03' });
const { mysql, redis } = app.needs;
const stranger = strangers(client);

/** What is left of users.locked_until, in ms. */
async function leftOf(id: string): Promise<number> {
  const [row] = await mysql.rows<{ ms: unknown }>('SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), locked_until) / 1000 AS ms FROM users WHERE id = ?', [id]);
  return Number(row!.ms);
}

for (const kind of ['known', 'unknown'] as const) {
  t.test(`the replies to four failures of ${kind} addresses are held by steps, the fifth locks`, async (t) => {
    const email = kind === 'known' ? (await account()).email : 'nobody@example.com';
    const from = stranger();
    const over: number[] = [];
    for (const delay of [50, 100, 200, 200]) {
      const { answer, ms } = await timed(from.login(email, WRONG));
      t.match(answer, { status: 401, body: { code: 'INVALID_CREDENTIALS' } });
      t.ok(ms >= delay && ms < atMost(delay + 400), `held ${Math.round(ms)} ms of ${delay}`);
      over.push(ms - delay);
    }
    // What the machine is busy with comes on top; the median is the service's own.
    const middle = [...over].sort((a, b) => a - b)[2]!;
    figure(t, 'T12', { did: `four failures of ${kind} addresses, delays of 50 to 200 ms`, figure: `held +${over.map((ms) => ms.toFixed(0)).join(', +')} ms`, ok: Math.min(...over) >= 0 && middle <= atMost(150) });
    t.equal(codeOf(await from.login(email, WRONG)), 'INVALID_CREDENTIALS', 'the try right after a held reply is not throttled');
    const locked = await from.login(email, WRONG);
    t.match(locked, { status: 429, body: { code: 'ACCOUNT_LOCKED', retryAfter: 1 } });
    t.equal(locked.headers.get('retry-after'), '1');
  });
}

t.test('an attempt inside the delay of another is neither hashed nor counted', async (t) => {
  const slow = await startApp(t, { LOGIN_DELAYS_S: '0,1,0' });
  const { email, password } = await slow.account();
  const from = slow.client();
  await from.login(email, WRONG);
  const failing = from.login(email, WRONG);
  await counted(slow.app.needs, email, 2);
  const hashed = await hashesRun(slow);
  for (const answer of await Promise.all(Array.from({ length: 3 }, () => slow.client().login(email, password)))) {
    t.match(answer, { status: 429, body: { code: 'LOGIN_THROTTLED', retryAfter: 1 } });
    t.equal(answer.headers.get('retry-after'), '1');
  }
  t.equal(await hashesRun(slow), hashed);
  await failing;
  for (let i = 0; i < 2; i += 1) t.equal(codeOf(await from.login(email, WRONG)), 'INVALID_CREDENTIALS', 'still below the threshold');
  t.equal(codeOf(await from.login(email, password)), 'OK');
});

async function hashesRun({ app }: Pick<TestApp, 'app'>): Promise<number> {
  const metric = await app.needs.metrics.registry.getSingleMetricAsString('idp_hash_run_seconds');
  return Number(/_count (\d+)/.exec(metric)?.[1] ?? 0);
}

t.test('a lock refuses the right password, is not extended by attempts and locks again by longer steps', async (t) => {
  const { id, email, password } = await account();
  const from = stranger();
  for (const lasts of [600, 1200, 1800]) {
    if (lasts === 600) await lockOut(from, email);
    else t.equal(codeOf(await from.login(email, WRONG)), 'INVALID_CREDENTIALS', 'one guess after a lock');
    const left = await leftOf(id);
    const until = performance.now() + left;
    t.ok(left > lasts - 600 && left <= lasts, `locked for ${left} of ${lasts} ms`);
    // So late that a lock which began again would end later by as much.
    if (lasts > 600) await pause(500);
    for (let i = 0; i < 3 && performance.now() < until - 300; i += 1) {
      t.equal(codeOf(await from.login(email, password)), 'ACCOUNT_LOCKED');
      t.equal(codeOf(await from.login(email, WRONG)), 'ACCOUNT_LOCKED');
    }
    t.ok(performance.now() + (await leftOf(id)) - until < 250, 'not extended');
    await pause(until - performance.now() + 20);
  }
  t.equal(codeOf(await from.login(email, password)), 'OK', 'and ends by itself');
  t.equal(codeOf(await from.login(email, WRONG)), 'INVALID_CREDENTIALS');
  t.equal(codeOf(await from.login(email, password)), 'OK', 'success cleared the counts: one failure does not lock');
});

t.test('hammering at the end of a lock does not reset its steps', async (t) => {
  const { id, email } = await account();
  await lockOut(stranger(), email);
  const answers: Answer[] = [];
  for (let more = 2; more > 0; more -= tally(answers)['INVALID_CREDENTIALS'] ? 1 : 0) {
    answers.push(...(await Promise.all(Array.from({ length: 20 }, () => stranger().login(email, WRONG)))));
  }
  t.equal(tally(answers)['INVALID_CREDENTIALS'], 1, 'exactly one guess was verified');
  t.same(await mysql.rows('SELECT lock_step AS step FROM users WHERE id = ?', [id]), [{ step: 2 }], 'which locked by the second step');
});

t.test('the counts are forgotten after 24 quiet hours, which begin when the last lock or delay ends', async (t) => {
  const { email } = await account();
  const from = stranger();
  const ttl = async (): Promise<number> => Math.max(...(await Promise.all((await everyKey(redis, 'idp:*:gate:all')).map((key) => redis.pttl(key)))));
  await flushEvery(redis);
  await from.login(email, WRONG);
  const day = 24 * 3600_000;
  const quiet = await ttl();
  t.ok(quiet > day - 1000 && quiet <= day + 50, 'after a delay');
  for (let i = 0; i < 4; i += 1) await from.login(email, WRONG);
  t.ok((await ttl()) > day + 300, 'after a lock');
});

t.test('every key of the gate has the prefix and a life, and no key holds an address', async (t) => {
  const { email, password } = await account();
  await stranger().login(email, password);
  await stranger().login(email, WRONG);
  for (const key of await everyKey(redis)) {
    t.match(key, /^idp:\{[\w-]{43}\}:(gate|held):/);
    t.ok((await redis.pttl(key)) > 0, 'has a TTL');
  }
});
