// Mostly waits.

import t from 'tap';
import { startApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { figure } from '../support/figures.js';
import { atMost, timed, until } from '../support/patience.js';
import { startProxy } from '../support/proxy.js';
import { freshDatabase } from '../support/stores.js';

const UNAVAILABLE = { status: 503, setCookies: [], body: { code: 'UNAVAILABLE', retryAfter: 1 } };
const BACK_MS = atMost(5000);
const AT_ONCE = { refuse: 6, hang: 100 };

for (const [mode, bound] of [['refuse', 250], ['hang', 1000]] as const) {
  const mostMs = atMost(bound);
  t.test(`with MySQL that ${mode === 'hang' ? 'hangs' : 'refuses'}, everything that needs it is 503, never 401, and back within 5 s`, { timeout: 60_000 }, async (t) => {
    const url = await freshDatabase(t);
    const proxy = await startProxy(t, url);
    const app = await startApp(t, { MYSQL_URL: proxy.via(url) });
    const { email, password } = await app.account();
    const client = app.client();
    const { accessToken, refreshToken } = (await client.login(email, password)).body as Record<string, string>;
    const browser = app.client();
    await browser.login(email, password, 'cookie');
    const jar = new Map(browser.jar);
    let [slowest, asked] = [0, 0];
    const within = async (what: string, work: () => Promise<Answer>, expected: object): Promise<void> => {
      asked += 1;
      const { value, ms } = await timed(work);
      t.match(value, expected, what);
      t.ok(ms <= mostMs, `${what}: ${ms.toFixed(0)} ms of ${mostMs}`);
      slowest = Math.max(slowest, ms);
    };
    await proxy.become(mode);

    for (let round = 0; round < 2; round += 1) {
      const requests = [
        () => within('login', () => app.client().login(email, password), UNAVAILABLE),
        () => within('login with a wrong password', () => app.client().login(email, 'wrong'), UNAVAILABLE),
        () => within('login of nobody', () => app.client().login('nobody@example.com', 'wrong'), UNAVAILABLE),
        () => within('second factor', () => app.client().request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken: 'x'.repeat(43), method: 'totp', code: '123456' } }), { status: /^(503|401)$/ }),
        () => within('refresh', () => client.refresh(refreshToken), UNAVAILABLE),
        () => within('refresh by cookie', () => browser.refreshByCookie(), UNAVAILABLE),
        () => within('profile', () => client.profile(accessToken), UNAVAILABLE),
        () => within('logout', () => client.request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${accessToken}` } }), UNAVAILABLE),
        () => within('request of a deletion', () => client.request('POST', '/api/auth/account/delete-request', { headers: { authorization: `Bearer ${accessToken}` } }), UNAVAILABLE),
        () => within('sign-up', () => app.client().request('POST', '/api/auth/register', { body: { email, password: 'a password of my own' } }), UNAVAILABLE),
        () => within('request of a verification mail', () => app.client().request('POST', '/api/auth/email/resend', { body: { email } }), UNAVAILABLE),
        () => within('proof of an address', () => app.client().request('POST', '/api/auth/email/verify', { body: { token: 'x' } }), UNAVAILABLE),
        () => within('request of a password reset', () => app.client().request('POST', '/api/auth/password/forgot', { body: { email } }), UNAVAILABLE),
        () => within('password reset', () => app.client().request('POST', '/api/auth/password/reset', { body: { token: 'x', password: 'a password of my own' } }), UNAVAILABLE),
        () => within('request of a restore', () => client.request('POST', '/api/auth/account/restore-request', { body: { email } }), UNAVAILABLE),
        () => within('restore of nobody', () => client.request('POST', '/api/auth/account/restore', { body: { email: 'nobody@example.com', otp: '12345678' } }), UNAVAILABLE),
        () => within('live', () => client.request('GET', '/health/live'), { status: 200 }),
        () => within('ready', () => client.request('GET', '/health/ready'), { status: 503, body: { status: 'unavailable' } }),
      ];
      // Few at a time: the clients share the cores with the service, and their own work is no part of the figure.
      for (let from = 0; from < requests.length; from += AT_ONCE[mode]) await Promise.all(requests.slice(from, from + AT_ONCE[mode]).map((send) => send()));
    }
    const crowd = await timed(() => Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? client.profile(accessToken) : client.refresh(refreshToken)))));
    t.same([...new Set(crowd.value.map(({ status }) => status))], [503], 'a hundred at once: 503 each');
    t.ok(crowd.ms <= mostMs + 250, `all of them within ${crowd.ms.toFixed(0)} ms`);

    await proxy.become('pass');
    const back = await until(async () => (await client.profile(accessToken)).status === 200, BACK_MS);
    await until(async () => (await client.request('GET', '/health/ready')).status === 200, BACK_MS);
    t.match(await client.refresh(refreshToken), { status: 200 }, 'no token was burnt');
    t.same(browser.jar, jar, 'no cookie was cleared');
    t.equal((await browser.refreshByCookie()).status, 200);
    t.equal((await app.client().login(email, password)).status, 200, 'nobody is locked out');
    figure(t, 'T64', { did: `MySQL ${mode === 'hang' ? 'hangs' : 'refuses'}: ${asked} requests of every kind, 100 more at once`, figure: `answered as they must within ${slowest.toFixed(0)} ms of ${mostMs}, the 100 with ${[...new Set(crowd.value.map(({ status }) => status))].join(' and ')}; back after ${back.toFixed(0)} ms`, ok: slowest <= mostMs && back <= BACK_MS && crowd.value.every(({ status }) => status === 503) });
  });
}

t.test('connections that are cut under load cost 503 at most, and the next ones work', { timeout: 90_000 }, async (t) => {
  const url = await freshDatabase(t);
  const proxy = await startProxy(t, url);
  const app = await startApp(t, { MYSQL_URL: proxy.via(url) });
  const { email, password } = await app.account();
  const { accessToken } = (await app.client().login(email, password)).body as Record<string, string>;
  let over = false;
  const seen = new Map<number, number>();
  const users = Array.from({ length: 8 }, async (_, i) => {
    while (!over) {
      const { status } = i % 4 === 0 ? await app.client().login(email, password) : await app.client().profile(accessToken);
      seen.set(status, (seen.get(status) ?? 0) + 1);
    }
  });
  for (let i = 0; i < 10; i += 1) {
    const served = seen.get(200) ?? 0;
    await new Promise((resolve) => setTimeout(resolve, 150));
    // However long it takes: the next cut is to meet a service that serves again.
    await until(async () => (seen.get(200) ?? 0) >= served + 20);
    proxy.cut();
  }
  over = true;
  await Promise.all(users);
  const others = [...seen.keys()].filter((status) => ![200, 503].includes(status));
  t.same(others, [], JSON.stringify([...seen]));
  figure(t, 'T64', { did: 'all connections cut 10 times under load', figure: `${seen.get(200) ?? 0} × 200, ${seen.get(503) ?? 0} × 503, ${others.length} kinds of other replies`, ok: others.length === 0 });
  t.equal((await app.client().profile(accessToken)).status, 200);
});

t.test('a slow way to MySQL makes slow replies, not wrong ones', async (t) => {
  const url = await freshDatabase(t);
  const proxy = await startProxy(t, url);
  const app = await startApp(t, { MYSQL_URL: proxy.via(url) });
  const { email, password } = await app.account();
  proxy.delay(30);
  const login = await app.client().login(email, password);
  t.equal(login.status, 200);
  t.equal((await app.client().refresh(login.body['refreshToken'])).status, 200);
});
