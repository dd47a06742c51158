// Mostly waits.

import t from 'tap';
import { pause } from '../../../support/attempts.js';
import { fragmentOf, openBrowser, startOAuthApp, type Step } from '../../../support/oidc.js';
import { atMost } from '../../../support/patience.js';
import { startProxy } from '../../../support/proxy.js';
import { freshDatabase, oneRedis } from '../../../support/stores.js';

const codeOf = ({ text }: Step): unknown => (JSON.parse(text) as { code: unknown }).code;

/** A step with how long it took, in ms. */
async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const started = performance.now();
  return { value: await work, ms: performance.now() - started };
}

t.test('a provider that is away is asked for nothing before it is needed, and again once it is back', async (t) => {
  const { oidc, start, signIn, client, account } = await startOAuthApp(t);
  oidc.people['ann'] = { email: 'ann@example.com', email_verified: true };
  t.same(oidc.asked, [], 'the service started without it');
  await oidc.proxy.become('refuse');
  const refused = await timed(openBrowser('ann').visit(start()));
  t.match(refused.value, { status: 502, location: null });
  t.equal(codeOf(refused.value), 'OAUTH_PROVIDER_UNAVAILABLE');
  t.ok(refused.ms < atMost(400), `${refused.ms} ms`);
  const { email, password } = await account();
  t.equal((await client().login(email, password)).status, 200, 'the rest goes on');

  await oidc.proxy.become('hang');
  const hung = await timed(Promise.all(Array.from({ length: 5 }, () => openBrowser('ann').visit(start()))));
  t.ok(hung.value.every((step) => step.status === 502));
  t.ok(hung.ms >= 650 && hung.ms < atMost(1500), `${hung.ms} ms`);
  t.equal(oidc.asked.length, 0);

  await oidc.proxy.become('refuse');
  await oidc.proxy.become('pass');
  t.match(await signIn('ann'), { access_token: String });
  await signIn('ann');
  t.equal(oidc.asked.filter((path) => path === '/.well-known/openid-configuration').length, 1, 'discovered once');
});

t.test('a provider that fails at the last step ends the flow in time, and it cannot be tried again', async (t) => {
  const { app, oidc, start, signIn } = await startOAuthApp(t);
  oidc.people['bob'] = { email: 'bob@example.com', email_verified: true };
  for (const mode of ['hang', 'refuse'] as const) {
    const browser = openBrowser('bob');
    const callback = await browser.toCallback(start());
    await oidc.proxy.become(mode);
    const { value, ms } = await timed(browser.visit(callback));
    t.same(fragmentOf(value), { error: 'provider_unavailable' }, mode);
    t.ok(ms < atMost(1500), `${mode}: ${ms} ms`);
    if (mode === 'hang') await oidc.proxy.become('refuse');
    await oidc.proxy.become('pass');
    t.equal(codeOf(await browser.visit(callback)), 'OAUTH_STATE_INVALID');
  }
  t.equal((await app.needs.mysql.rows('SELECT id FROM users')).length, 0);
  t.match(await signIn('bob'), { access_token: String });
});

t.test('a slow provider is waited for as long as the setting says', async (t) => {
  const { oidc, start, signIn } = await startOAuthApp(t, { OAUTH_TIMEOUT_MS: '1000' });
  oidc.people['cid'] = { email: 'cid@example.com', email_verified: true };
  oidc.proxy.delay(20);
  t.match(await signIn('cid'), { access_token: String });
  oidc.proxy.delay(0);
  const browser = openBrowser('cid');
  const callback = await browser.toCallback(start());
  oidc.proxy.delay(800);
  const { value, ms } = await timed(browser.visit(callback));
  t.same(fragmentOf(value), { error: 'provider_unavailable' });
  t.ok(ms >= 950 && ms < atMost(1900), `${ms} ms`);
  oidc.proxy.delay(0);
});

t.test('without Redis nobody begins or ends a sign-in, and without MySQL the client is told', async (t) => {
  const [mysqlUrl, redisUrl] = [await freshDatabase(t), (await oneRedis(t)).url];
  const [mysql, redis] = [await startProxy(t, mysqlUrl), await startProxy(t, redisUrl)];
  const { oidc, start, signIn } = await startOAuthApp(t, { MYSQL_URL: mysql.via(mysqlUrl), REDIS_URL: redis.via(redisUrl) });
  oidc.people['dan'] = { email: 'dan@example.com', email_verified: true };
  const browser = openBrowser('dan');
  const callback = await browser.toCallback(start());
  await redis.become('refuse');
  for (const url of [start(), callback]) {
    const { value, ms } = await timed(browser.visit(url));
    t.match(value, { status: 503, location: null });
    t.equal(codeOf(value), 'UNAVAILABLE');
    t.ok(ms < atMost(400), `${ms} ms`);
  }
  await redis.become('pass');
  await pause(300);
  await mysql.become('refuse');
  t.same(fragmentOf(await browser.visit(callback)), { error: 'unavailable', retry_after: '1' });
  await mysql.become('pass');
  await pause(300);
  t.match(await signIn('dan'), { access_token: String });
});
