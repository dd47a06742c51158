import t from 'tap';
import { startApp } from '../../../support/app.js';
import { codeOf } from '../../../support/attempts.js';
import { APP_URI, fragmentOf, openBrowser, startOAuthApp, type Step } from '../../../support/oidc.js';
import { exchange, request } from '../../../support/raw.js';

const { app, base, oidc, start } = await startOAuthApp(t);
const { mysql } = app.needs;
oidc.people['ann'] = { email: 'ann@example.com', email_verified: true };

const problemOf = ({ status, location, text }: Step): { status: number; location: string | null; code: unknown } => ({ status, location, code: (JSON.parse(text) as { code: unknown }).code });
const refused = (status: number, code: string) => ({ status, location: null, code });
const rows = async (): Promise<number> => (await mysql.rows('SELECT id FROM users UNION ALL SELECT id FROM sessions UNION ALL SELECT user_id FROM oauth_identities')).length;

t.test('tokens go to a listed URI alone, byte for byte: whatever differs is 400 and no redirect', async (t) => {
  const browser = openBrowser('ann');
  const listed = new URLSearchParams({ redirect_uri: APP_URI }).toString();
  t.equal((await browser.visit(`${base}/api/auth/oauth/test?${listed}`)).status, 302);
  const others = [
    `${APP_URI}/`, `${APP_URI}?`, `${APP_URI}#`, `${APP_URI}?x=1`, `${APP_URI} `, ` ${APP_URI}`, 'https://app.example.com/', 'https://app.example.com', 'https://app.example.com:443/signed-in',
    'https://app.example.com:444/signed-in', 'http://app.example.com/signed-in', 'HTTPS://app.example.com/signed-in', 'https://APP.example.com/signed-in', 'https://app.example.com/Signed-in',
    'https://app.example.com/signed%2Din', 'https://app.example.com/./signed-in', 'https://app.example.com//signed-in', 'https://app.example.com\\signed-in', 'https://app.example.com./signed-in',
    'https://app.example.com@evil.example/signed-in', 'https://app.example.com.evil.example/signed-in', '//app.example.com/signed-in', '/signed-in', 'javascript:alert(1)', `${APP_URI}\r\nSet-Cookie: a=b`, `${APP_URI}\u0000`,
    'http://localhost:3001/cb', 'http://127.0.0.1:3000/cb', 'x'.repeat(3000),
  ];
  for (const uri of others) t.same(problemOf(await browser.visit(start({ redirect_uri: uri }))), refused(400, 'INVALID_REQUEST'), uri.slice(0, 60));
  for (const query of ['', 'redirect_uri=', `${listed}&${listed}`, 'redirect_uri=https%253A%252F%252Fapp.example.com%252Fsigned-in', `${listed}%0d%0aX-Injected:%201`, `${listed}%2f`]) {
    const reply = await exchange(app.port, request(`GET /api/auth/oauth/test?${query}`));
    t.match(reply, { status: 400, problem: { code: 'INVALID_REQUEST' } }, query);
    t.notOk(reply.headers.has('location') || reply.headers.has('x-injected'), query);
  }
});

t.test('a provider that is not set up is 404, at both ends', async (t) => {
  const browser = openBrowser('ann');
  for (const name of ['nobody', 'TEST', 'test%2f', '__proto__', 'constructor', '%00']) {
    t.same(problemOf(await browser.visit(start({}, name))), refused(404, 'OAUTH_PROVIDER_UNKNOWN'), name);
    t.same(problemOf(await browser.visit(`${base}/api/auth/oauth/${name}/callback?state=x&code=y`)), refused(404, 'OAUTH_PROVIDER_UNKNOWN'), name);
  }
});

t.test('an answer without a flow of its own gets a problem, never a redirect', async (t) => {
  const browser = openBrowser('ann');
  const callback = await browser.toCallback(start());
  const state = new URL(callback).searchParams.get('state')!;
  const at = (query: string, name = 'test'): Promise<Step> => browser.visit(`${base}/api/auth/oauth/${name}/callback${query}`);
  for (const query of ['', '?code=x', '?state=&code=x', `?state=${state.slice(0, -1)}&code=x`, `?state=${'A'.repeat(43)}&code=x`, '?error=access_denied', '?state=%0d%0aX:1&code=x', '?state=*&code=x']) {
    t.same(problemOf(await at(query)), refused(400, 'OAUTH_STATE_INVALID'), query);
  }
  for (const query of [`?state=${state}&state=${state}&code=x`, `?state=${'x'.repeat(129)}`]) t.same(problemOf(await at(query)), refused(400, 'INVALID_REQUEST'), query.slice(0, 40));
  t.same(problemOf(await at(`?state=${state}&code=x`, 'other')), refused(400, 'OAUTH_STATE_INVALID'), 'of another provider');
  t.same(problemOf(await browser.visit(callback)), refused(400, 'OAUTH_STATE_INVALID'), 'which used it up');
});

t.test('a flow ends once: of many callbacks at once one opens a session', async (t) => {
  const browser = openBrowser('ann');
  const callback = await browser.toCallback(start());
  const steps = await Promise.all(Array.from({ length: 20 }, () => browser.visit(callback)));
  t.equal(steps.filter(({ status }) => status === 302).length, 1);
  t.match(fragmentOf(steps.find(({ status }) => status === 302)!), { access_token: String });
  for (const step of steps.filter(({ status }) => status !== 302)) t.same(problemOf(step), refused(400, 'OAUTH_STATE_INVALID'));
  t.same(problemOf(await browser.visit(callback)), refused(400, 'OAUTH_STATE_INVALID'), 'nor later');
  t.equal((await mysql.rows('SELECT id FROM sessions')).length, 1);
});

t.test('what the provider refuses or gets wrong ends in an error for the client, and leaves nothing', async (t) => {
  oidc.people['new'] = { email: 'new@example.com', email_verified: true };
  const before = await rows();
  /** The end of a flow whose way is tampered with. */
  const ending = async (work: { person?: string; authorize?: (url: URL) => void; callback?: (url: URL) => void; tamper?: Parameters<typeof oidc.tamper>[0] }): Promise<Record<string, string>> => {
    const browser = openBrowser(work.person ?? 'new');
    const callback = new URL(await browser.toCallback(start(), work.authorize));
    work.callback?.(callback);
    oidc.tamper(work.tamper ?? (() => undefined));
    const step = await browser.visit(callback.href);
    oidc.tamper(() => undefined);
    return fragmentOf(step);
  };
  const idToken = (change: (text: string) => string) => (path: string) => (path === '/token' ? (body: Record<string, unknown>) => ({ ...body, id_token: change(body['id_token'] as string) }) : undefined);
  const forged = (header: object) => idToken((text) => [Buffer.from(JSON.stringify(header)).toString('base64url'), text.split('.')[1], ''].join('.'));

  t.same(await ending({ person: 'nobody' }), { error: 'access_denied' });
  t.same(await ending({ callback: (url) => url.searchParams.set('code', 'wrong') }), { error: 'provider_error' }, 'a wrong code');
  t.same(await ending({ callback: (url) => url.searchParams.delete('code') }), { error: 'provider_error' }, 'no code');
  t.same(await ending({ callback: (url) => url.searchParams.set('iss', 'https://evil.example') }), { error: 'provider_error' }, 'another issuer');
  t.same(await ending({ callback: (url) => url.searchParams.set('error', 'x\r\ny') }), { error: 'provider_error' }, 'an error of no list');
  t.same(await ending({ callback: (url) => url.searchParams.set('error', 'temporarily_unavailable') }), { error: 'provider_unavailable' });
  t.same(await ending({ authorize: (url) => url.searchParams.set('nonce', 'another') }), { error: 'provider_error' }, 'another nonce');
  t.same(await ending({ authorize: (url) => url.searchParams.set('code_challenge', 'A'.repeat(43)) }), { error: 'provider_error' }, 'another PKCE challenge');
  t.same(await ending({ tamper: idToken((text) => text.slice(0, -8) + (text.endsWith('AAAAAAAA') ? 'BBBBBBBB' : 'AAAAAAAA')) }), { error: 'provider_error' }, 'a wrong signature');
  t.same(await ending({ tamper: forged({ alg: 'none' }) }), { error: 'provider_error' }, 'no signature');
  t.same(await ending({ tamper: idToken(() => 'no.jwt') }), { error: 'provider_error' });
  t.same(await ending({ tamper: (path) => (path === '/token' ? () => ({}) : undefined) }), { error: 'provider_error' }, 'no tokens');
  t.same(await ending({ tamper: (path) => (path === '/token' ? ({ id_token: _, ...rest }) => rest : undefined) }), { error: 'provider_error' }, 'no ID token');
  t.same(await ending({ tamper: (path) => (path === '/token' ? 500 : undefined) }), { error: 'provider_unavailable' });
  t.same(await ending({ tamper: (path) => (path === '/token' ? 302 : undefined) }), { error: 'provider_error' });
  t.same(await ending({ tamper: (path) => (path === '/me' ? 503 : undefined) }), { error: 'provider_unavailable' }, 'userinfo');
  t.same(await ending({ tamper: (path) => (path === '/me' ? (body) => ({ ...body, sub: 'somebody else' }) : undefined) }), { error: 'provider_error' }, 'userinfo of another');
  t.equal(await rows(), before);
  t.match(await ending({}), { access_token: String });
});

t.test('sign-ins begun are limited per client address', async (t) => {
  const limited = await startOAuthApp(t, { LIMIT_OAUTH: '3/60' });
  const codes = [];
  for (let i = 0; i < 4; i += 1) codes.push((await openBrowser('ann').visit(limited.start())).status);
  t.same(codes, [302, 302, 302, 429]);
  t.equal((await openBrowser('ann', '203.0.113.8').visit(limited.start())).status, 302);
});

t.test('without providers there is nobody to sign in with', async (t) => {
  const { client } = await startApp(t);
  for (const path of ['/api/auth/oauth/test?redirect_uri=x', '/api/auth/oauth/test/callback?state=x']) t.equal(codeOf(await client().request('GET', path)), 'OAUTH_PROVIDER_UNKNOWN');
});
