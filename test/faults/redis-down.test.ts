import t, { type Test } from 'tap';
import { Redis } from 'ioredis';
import { startApp, type TestApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { figure } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { atMost, timed, until } from '../support/patience.js';
import { ownRedis } from '../support/stores.js';
import type { RowId } from './rows.js';

/** What login tells while Redis cannot be asked: nobody is let in uncounted, nobody is told 401. */
const UNAVAILABLE = { status: 503, setCookies: [], body: { code: 'UNAVAILABLE', retryAfter: 1 } };
const BACK_MS = atMost(5000);

interface Down {
  name: string;
  row: RowId;
  /** Longest time to a 503, in ms. */
  mostMs: number;
  start: (app: TestApp) => Promise<unknown>;
  end: (app: TestApp, t: Test) => Promise<unknown>;
}

const configure = async ({ redis }: TestApp, ...command: [string, ...string[]]): Promise<void> => {
  const admin = new Redis(redis.url);
  await admin.call(...command);
  admin.disconnect();
};

const DOWN: Down[] = [
  { name: 'killed', row: 'T61', mostMs: 250, start: ({ redis }) => redis.stop('SIGKILL'), end: ({ redis }, t) => ownRedis(t, [], redis.port) },
  { name: 'hung', row: 'T61', mostMs: 1000, start: async ({ redis }) => process.kill(redis.pid, 'SIGSTOP'), end: async ({ redis }) => process.kill(redis.pid, 'SIGCONT') },
  { name: 'out of memory', row: 'T62', mostMs: 250, start: (app) => configure(app, 'CONFIG', 'SET', 'maxmemory', '1'), end: (app) => configure(app, 'CONFIG', 'SET', 'maxmemory', '0') },
  { name: 'a replica after a failover', row: 'T61', mostMs: 250, start: (app) => configure(app, 'REPLICAOF', '127.0.0.1', '1'), end: (app) => configure(app, 'REPLICAOF', 'NO', 'ONE') },
];

for (const { name, row, mostMs: bound, start, end } of DOWN) {
  const mostMs = atMost(bound);
  t.test(`with Redis ${name}, logins are 503, refresh and reads are served, and all is back within 5 s`, { timeout: 60_000 }, async (t) => {
    const app = await startApp(t, { LIMIT_REFRESH_SESSION: '3/60', LIMIT_REFRESH_IP: '1000/60', LIMIT_RESTORE_REQUEST: '1000/60', LIMIT_RESTORE: '1000/60' });
    const { email, password } = await app.account();
    const client = app.client();
    const { accessToken, refreshToken } = (await client.login(email, password)).body as Record<string, string>;
    const request = (method: string, path: string, body?: unknown) => app.client().request(method, path, { headers: { authorization: `Bearer ${accessToken}` }, ...(body === undefined ? {} : { body }) });
    let slowest = 0;
    const within = async (what: string, work: () => Promise<Answer>, expected: object): Promise<Answer> => {
      const { value, ms } = await timed(work);
      t.match(value, expected, what);
      t.ok(ms <= mostMs, `${what}: ${ms.toFixed(0)} ms of ${mostMs}`);
      slowest = Math.max(slowest, ms);
      return value;
    };
    await start(app);

    for (let round = 0; round < 2; round += 1) {
      await within('right password', () => app.client().login(email, password), UNAVAILABLE);
      if (name === 'killed' || name === 'hung') await within('second factor of an unknown login', () => request('POST', '/api/auth/mfa/verify-login', { mfaToken: 'x', method: 'totp', code: '123456' }), UNAVAILABLE);
      await within('wrong password', () => app.client().login(email, 'wrong'), UNAVAILABLE);
      await within('unknown address', () => app.client().login('nobody@example.com', 'wrong'), UNAVAILABLE);
    }
    await within('request of a deletion', () => request('POST', '/api/auth/account/delete-request'), UNAVAILABLE);
    await within('deletion', () => request('DELETE', '/api/auth/account', { otp: '12345678' }), UNAVAILABLE);
    for (const someone of [email, 'nobody@example.com']) {
      await within(`request of a restore for ${someone}`, () => request('POST', '/api/auth/account/restore-request', { email: someone }), UNAVAILABLE);
      await within(`restore of ${someone}`, () => request('POST', '/api/auth/account/restore', { email: someone, otp: '12345678' }), UNAVAILABLE);
    }
    await within('profile', () => client.profile(accessToken), { status: 200, body: { email } });
    let newest: unknown = refreshToken;
    for (let i = 0; i < 3; i += 1) newest = (await within('refresh', () => client.refresh(newest), { status: 200 })).body['refreshToken'];
    await within('refresh beyond the limit', () => client.refresh(newest), { status: 429, body: { code: 'RATE_LIMITED' } });
    await within('live', () => request('GET', '/health/live'), { status: 200, body: { status: 'live' } });
    if (['killed', 'hung'].includes(name)) await within('ready', () => request('GET', '/health/ready'), { status: 503, body: { status: 'unavailable' } });
    const crowd = await timed(() => Promise.all(Array.from({ length: 50 }, () => app.client().login(email, password))));
    t.ok(crowd.value.every(({ status }) => status === 503), 'fifty logins at once: 503 each');
    t.ok(crowd.ms <= mostMs * 2, `all of them within ${crowd.ms.toFixed(0)} ms`);

    await end(app, t);
    const back = await until(async () => (await app.client().login(email, password)).status === 200, BACK_MS);
    await until(async () => (await request('GET', '/health/ready')).status === 200, BACK_MS);
    t.match(await app.client().login(email, 'wrong'), { status: 401 }, 'and guesses are counted again');
    const letIn = crowd.value.filter(({ status }) => status === 200).length;
    figure(t, row, { did: `Redis ${name}: 6 logins one by one and 50 at once, refresh, profile`, figure: `${letIn} logins let in, the others 503; each reply within ${slowest.toFixed(0)} ms of ${mostMs}; back after ${back.toFixed(0)} ms`, ok: letIn === 0 && slowest <= mostMs && back <= BACK_MS });
  });
}

t.test('scripts that Redis forgets under load are sent again: no client notices', { timeout: 90_000 }, async (t) => {
  const app = await startApp(t, { LIMIT_REFRESH_SESSION: '100000/60', LIMIT_REFRESH_IP: '100000/60', HASH_QUEUE_MS: '10000' });
  const accounts = await Promise.all(Array.from({ length: 8 }, () => app.account()));
  const admin = new Redis(app.redis.url);
  t.teardown(() => admin.disconnect());
  let over = false;
  const statuses: number[] = [];
  const users = accounts.map(async ({ email, password }) => {
    while (!over) {
      const login = await app.client().login(email, password);
      statuses.push(login.status, (await app.client().refresh(login.body['refreshToken'])).status);
    }
  });
  for (let i = 0; i < 20; i += 1) {
    await admin.script('FLUSH');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  over = true;
  await Promise.all(users);
  const errors = statuses.filter((status) => status !== 200).length;
  t.ok(statuses.length > 50, `${statuses.length} requests`);
  figure(t, 'T60', { did: `${statuses.length} logins and refreshes, SCRIPT FLUSH every 100 ms`, figure: `${errors} errors`, ok: errors === 0 });
});

t.test('a Redis that drops keys when it is full is warned of at the start', async (t) => {
  const { redis, start } = await startNodes(t, 0);
  const admin = new Redis(redis.url);
  t.teardown(() => admin.disconnect());
  t.notMatch((await start()).output(), /maxmemory-policy/);
  await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const node = await start();
  const ms = await until(async () => /"level":"warn".*"policy":"allkeys-lru"/.test(node.output()), atMost(2000));
  figure(t, 'T62', { did: 'a start with allkeys-lru', figure: `warned of in the log within ${ms.toFixed(0)} ms`, ok: ms <= atMost(2100) });
});
