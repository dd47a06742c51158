import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { lockOut } from '../../support/attempts.js';
import { createClient } from '../../support/client.js';
import { until } from '../../support/patience.js';

const { app, base, client, account } = await startApp(t, { HASH_QUEUE_MS: '200', HASH_THREADS: '1', ARGON2_MEMORY_KIB: '4096' });
const opsBase = `http://127.0.0.1:${app.opsPort}`;
const ops = createClient(opsBase);

/** Values of the series of one scrape, by name with labels. */
async function scrape(): Promise<Map<string, number>> {
  const { status, headers, text } = await ops.request('GET', '/metrics');
  if (status !== 200 || !headers.get('content-type')!.startsWith('text/plain; version=0.0.4')) throw new Error(`no scrape: ${status} ${headers.get('content-type')}`);
  return new Map(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

t.test('what the service did is counted: logins and refreshes by outcome, hashing, scripts, requests', async (t) => {
  const before = await scrape();
  const { email, password } = await account();
  const { body } = await client().login(email, password);
  await client().refresh(body['refreshToken']);
  await client().refresh('garbage');
  await client().login(email, 'wrong');
  await client().login('nobody@example.com', 'wrong');
  const after = await scrape();
  const grown = (series: string): number => (after.get(series) ?? 0) - (before.get(series) ?? 0);
  t.equal(grown('idp_logins_total{outcome="success"}'), 1);
  t.equal(grown('idp_logins_total{outcome="invalid_credentials"}'), 2);
  t.equal(grown('idp_refreshes_total{outcome="rotated"}'), 1);
  t.equal(grown('idp_refreshes_total{outcome="token_invalid"}'), 1);
  t.ok(grown('idp_hash_run_seconds_count') >= 3);
  t.ok(grown('idp_hash_wait_seconds_count') >= 3);
  t.ok(grown('idp_hash_run_seconds_sum') > 0);
  t.equal(grown('idp_lua_seconds_count{script="login-reserve"}'), 3);
  t.ok(grown('idp_lua_seconds_sum{script="login-reserve"}') > 0);
  t.equal(grown('idp_http_request_seconds_count{method="POST",path="/api/auth/login",status="401"}'), 2);
});

t.test('the lock of an account is an outcome of its own', async (t) => {
  const { email, password } = await account();
  await lockOut(client({ ip: '198.51.100.9' }), email);
  const before = (await scrape()).get('idp_logins_total{outcome="account_locked"}') ?? 0;
  await client({ ip: '198.51.100.9' }).login(email, password);
  t.equal((await scrape()).get('idp_logins_total{outcome="account_locked"}'), before + 1);
});

t.test('the pool is shown as it is: threads, queue, and what it refused', async (t) => {
  const idle = await scrape();
  for (const [what, value] of [['threads', 1], ['alive', 1], ['running', 0], ['waiting', 0]] as const) t.equal(idle.get(`idp_hash_pool{what="${what}"}`), value, what);
  t.match(await ops.request('GET', '/pool'), { status: 200, body: { threads: 1, alive: 1, running: 0, waiting: 0, meanRunMs: Number } });

  // Enough at once for refusals, and some that go on until the scrape is there.
  let isOn = true;
  let refused = 0;
  const one = (network: string): Promise<unknown> => app.needs.hashing.hash('x', { network }).catch(() => (refused += 1));
  const lines = Array.from({ length: 8 }, async (_, n) => {
    while (isOn) {
      await one(`n${n}`);
      // Refusals alone would let nothing else have its turn.
      await turn();
    }
  });
  const flood = Promise.all(Array.from({ length: 3000 }, () => one('flood')));
  // Between two jobs of all lines there may be none for a moment.
  await until(async () => {
    const busy = await scrape();
    return busy.get('idp_hash_pool{what="running"}') === 1 && busy.get('idp_hash_pool{what="waiting"}')! > 0;
  });
  isOn = false;
  await Promise.all([flood, ...lines]);
  t.ok(refused > 0);
  const after = await scrape();
  const grown = (series: string): number => (after.get(series) ?? 0) - (idle.get(series) ?? 0);
  t.equal(['full', 'late', 'evicted', 'gone'].reduce((sum, reason) => sum + grown(`idp_hash_shed_total{reason="${reason}"}`), 0), refused);
  t.ok(grown('idp_hash_shed_total{reason="full"}') > 0);
});

t.test('utilisation is the share of their time that threads were busy, and batches are counted by their size', async (t) => {
  await scrape();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const idle = await scrape();
  t.equal(idle.get('idp_hash_utilisation'), 0);
  const until = performance.now() + 300;
  const lines = Array.from({ length: 6 }, async (_, n) => {
    while (performance.now() < until) await app.needs.hashing.hash('x', { network: `n${n}` }).catch(() => turn());
  });
  await Promise.all(lines);
  const busy = await scrape();
  const [share, spent] = [busy.get('idp_hash_utilisation')!, busy.get('idp_hash_busy_seconds_total')! - idle.get('idp_hash_busy_seconds_total')!];
  t.ok(share > 0.5 && share <= 1, `${share} of the time`);
  t.ok(spent > 0.15 && spent < 5, `${spent} s by one thread`);
  const batches = (name: string): number => (busy.get(`idp_batch_size_${name}{what="password"}`) ?? 0) - (idle.get(`idp_batch_size_${name}{what="password"}`) ?? 0);
  t.ok(batches('count') > 0 && batches('count') < batches('sum'), `${batches('sum')} passwords in ${batches('count')} batches`);
  t.equal(batches('sum'), busy.get('idp_hash_run_seconds_count')! - idle.get('idp_hash_run_seconds_count')!);
});

t.test('what is read and written together is counted by its size', async (t) => {
  const people = await Promise.all([1, 2, 3].map(() => account()));
  const before = await scrape();
  const issued = await Promise.all(people.map(async ({ email, password }) => (await client().login(email, password)).body));
  await Promise.all(issued.map((tokens) => client().profile(tokens['accessToken'] as string)));
  await Promise.all(issued.map((tokens) => client().request('GET', '/api/auth/sessions', { headers: { authorization: `Bearer ${String(tokens['accessToken'])}` } })));
  await Promise.all(issued.map((tokens) => client().refresh(tokens['refreshToken'])));
  const after = await scrape();
  for (const what of ['account', 'opening', 'session', 'profile', 'refresh', 'rotation']) {
    const grown = (name: string): number => (after.get(`idp_batch_size_${name}{what="${what}"}`) ?? 0) - (before.get(`idp_batch_size_${name}{what="${what}"}`) ?? 0);
    t.equal(grown('sum'), 3, what);
    t.ok(grown('count') >= 1 && grown('count') <= 3);
  }
});

t.test('a stall of the event loop shows in its delay, once', async (t) => {
  await scrape();
  // Longer than the interval in which it is looked for.
  await new Promise((resolve) => setTimeout(resolve, 120));
  const over = performance.now() + 250;
  while (performance.now() < over);
  await new Promise((resolve) => setTimeout(resolve, 120));
  t.ok((await scrape()).get('idp_event_loop_delay_seconds{quantile="1"}')! > 0.1);
  // A busy machine may stall it again, but not each time.
  await until(async () => {
    const later = await scrape();
    return ['0.5', '0.99', '1'].every((quantile) => later.get(`idp_event_loop_delay_seconds{quantile="${quantile}"}`)! < 0.1);
  });
});

t.test('every series has the prefix and a sentence about it', async (t) => {
  const { text } = await ops.request('GET', '/metrics');
  for (const line of text.split('\n').filter((one) => one !== '')) t.match(line, /^(# (HELP|TYPE) )?idp_\w/);
  for (const name of ['hash_pool', 'hash_wait_seconds', 'hash_run_seconds', 'hash_shed_total', 'hash_busy_seconds_total', 'hash_utilisation', 'batch_size', 'lua_seconds', 'logins_total', 'refreshes_total', 'event_loop_delay_seconds', 'held_replies', 'events_total', 'notifications_total', 'accounts_purged_total', 'process_cpu_seconds_total', 'nodejs_eventloop_lag_seconds']) t.match(text, new RegExp(`^# HELP idp_${name} \\w`, 'm'));
});

t.test('a label is from a closed list, whatever clients send', async (t) => {
  await client().request('GET', '/api/no/such/path?x=1');
  await client().request('PURGE', '/api/auth/login');
  const { text } = await ops.request('GET', '/metrics');
  t.notMatch(text, /no\/such|PURGE/);
});

t.test('health is told on both ports, metrics and pool on the ops port alone', async (t) => {
  for (const one of [ops, client()]) {
    t.match(await one.request('GET', '/health/live'), { status: 200, body: { status: 'live' } });
    t.match(await one.request('GET', '/health/ready'), { status: 200, body: { status: 'ready' } });
  }
  for (const path of ['/metrics', '/pool']) t.match(await client().request('GET', path), { status: 404, body: { code: 'NOT_FOUND' } }, `${path} on ${base}`);
  t.match(await ops.request('POST', '/api/auth/login', { body: { email: 'a@b', password: 'x' } }), { status: 404 }, 'and no login there');
});
