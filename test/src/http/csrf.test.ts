import t, { type Test } from 'tap';
import { randomBytes } from 'node:crypto';
import { issueXsrf, isXsrfOf } from '../../../src/http/csrf.js';
import { createKeyring } from '../../../src/keyring.js';
import { startApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';

const APP = 'https://app.example.com';

t.test('an XSRF value proves its session and no other, under the current secret and the previous one', (t) => {
  const old = randomBytes(32);
  const keyring = createKeyring(randomBytes(32), old);
  const value = issueXsrf(keyring, 'session-a');
  t.ok(isXsrfOf(keyring, 'session-a', value));
  t.ok(isXsrfOf(keyring, 'session-a', issueXsrf(createKeyring(old, null), 'session-a')));
  t.not(value, issueXsrf(keyring, 'session-a'), 'each value is new');
  const forged = Buffer.from(value, 'base64url');
  forged[3]! ^= 1;
  for (const bad of ['', 'x', value.slice(0, -2), `${value}AA`, forged.toString('base64url'), issueXsrf(createKeyring(randomBytes(32), null), 'session-a')]) t.notOk(isXsrfOf(keyring, 'session-a', bad), bad);
  t.notOk(isXsrfOf(keyring, 'session-b', value));
  t.end();
});

interface Signed {
  app: TestApp;
  client: Client;
  jar: string;
  xsrf: string;
}

async function signedIn(t: Test, settings: Record<string, string> = {}): Promise<Signed> {
  const app = await startApp(t, { CORS_ORIGINS: APP, ...settings });
  const { email, password } = await app.account();
  const client = app.client();
  await client.login(email, password, 'cookie');
  return { app, client, jar: client.cookieHeader(), xsrf: client.jar.get('XSRF-TOKEN')! };
}

/** Headers that must not move anything, given a session's cookies and its XSRF value. */
function forgeries({ app, jar, xsrf }: Signed, foreign: string): Record<string, Record<string, string>> {
  const without = jar.replace(/; XSRF-TOKEN=[^;]*/, '');
  const good = { 'cookie': jar, 'x-xsrf-token': xsrf };
  return {
    'no header': { cookie: jar },
    'a wrong header': { ...good, 'x-xsrf-token': 'x'.repeat(xsrf.length) },
    'a longer header': { ...good, 'x-xsrf-token': `${xsrf}A` },
    'no cookie': { ...good, cookie: without },
    'empty and empty': { 'cookie': `${without}; XSRF-TOKEN=`, 'x-xsrf-token': '' },
    'equal, but of no session': { 'cookie': `${without}; XSRF-TOKEN=tossed`, 'x-xsrf-token': 'tossed' },
    "equal, but of another's session": { 'cookie': `${without}; XSRF-TOKEN=${foreign}`, 'x-xsrf-token': foreign },
    'two cookies': { ...good, cookie: `${jar}; XSRF-TOKEN=${xsrf}` },
    'a bogus bearer and no header': { cookie: jar, authorization: 'Bearer x.y.z' },
    'a cross-site request': { ...good, 'sec-fetch-site': 'cross-site' },
    'a foreign origin': { ...good, origin: 'https://evil.example' },
    'a null origin': { ...good, origin: 'null' },
    'an origin like our own': { ...good, origin: `${app.base}.evil.example` },
    'an origin on another port': { ...good, origin: 'http://127.0.0.1:1' },
  };
}

t.test('a forged change with the cookies of a session is 403 and changes nothing', async (t) => {
  const signed = await signedIn(t);
  const { app, client, jar, xsrf } = signed;
  const other = app.client();
  const { email, password } = await app.account();
  await other.login(email, password, 'cookie');
  for (const [name, headers] of Object.entries(forgeries(signed, other.jar.get('XSRF-TOKEN')!))) {
    for (const path of ['/api/auth/logout', '/api/auth/refresh']) {
      const answer = await app.client().request('POST', path, { headers: { 'x-token-delivery': 'cookie', ...headers } });
      t.match(answer, { status: 403, setCookies: [], body: { code: 'CSRF_FAILED' } }, `${path}: ${name}`);
    }
  }
  t.equal((await client.profile()).status, 200, 'the session lives');
  t.equal((await client.refreshByCookie()).status, 200, 'its refresh token is still the newest');
  const logout = { 'cookie': client.cookieHeader(), 'x-xsrf-token': client.jar.get('XSRF-TOKEN')! };
  t.not(logout['x-xsrf-token'], xsrf, 'a refresh brings a new value');
  t.equal((await app.client().request('POST', '/api/auth/logout', { headers: { 'cookie': jar, 'x-xsrf-token': xsrf, 'origin': app.base } })).status, 204, 'from the own origin');
});

t.test('a change from an origin on the list passes with the right value', async (t) => {
  const { app, jar, xsrf } = await signedIn(t);
  const answer = await app.client().request('POST', '/api/auth/logout', { headers: { 'cookie': jar, 'x-xsrf-token': xsrf, 'origin': APP, 'sec-fetch-site': 'same-site' } });
  t.equal(answer.status, 204);
});

t.test('a valid bearer needs no XSRF value, whatever cookies come along', async (t) => {
  const { app, jar } = await signedIn(t);
  const { email, password } = await app.account();
  const token = (await app.client().login(email, password)).body['accessToken'] as string;
  const answer = await app.client().request('POST', '/api/auth/logout', { headers: { 'authorization': `Bearer ${token}`, 'cookie': jar, 'origin': 'https://evil.example', 'sec-fetch-site': 'cross-site' } });
  t.equal(answer.status, 204);
  t.equal((await app.client().profile(token)).status, 401, 'the session of the bearer ended');
  t.equal((await app.client().request('GET', '/api/auth/profile', { headers: { cookie: jar } })).status, 200, 'that of the cookie did not');
});

t.test('reading needs no XSRF value', async (t) => {
  const { app, jar } = await signedIn(t);
  t.equal((await app.client().request('GET', '/api/auth/profile', { headers: { cookie: jar, origin: 'https://evil.example' } })).status, 200);
});

t.test('a login into cookies from a foreign site is 403, into JSON it is not', async (t) => {
  const app = await startApp(t, { CORS_ORIGINS: APP });
  const { email, password } = await app.account();
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }]) {
    t.match(await app.client().login(email, password, 'cookie', headers), { status: 403, setCookies: [], body: { code: 'CSRF_FAILED' } });
    t.match(await app.client().login(email, password, 'json', headers), { status: 200 });
  }
  for (const headers of [{}, { origin: APP }, { origin: app.base, 'sec-fetch-site': 'same-origin' }]) t.match(await app.client().login(email, password, 'cookie', headers), { status: 200, text: '{"ok":true}' });
  const form = await app.client().request('POST', '/api/auth/login', { raw: JSON.stringify({ email, password }), headers: { 'content-type': 'text/plain', 'x-token-delivery': 'cookie' } });
  t.match(form, { status: 415, setCookies: [] }, 'what a form can send is no login');
});

t.test('behind TLS the own origin is https alone', async (t) => {
  const { app, jar, xsrf } = await signedIn(t, { TRUST_TLS_PROXY: '1' });
  const logout = (origin: string) => app.client().request('POST', '/api/auth/logout', { headers: { 'cookie': jar, 'x-xsrf-token': xsrf, origin } });
  t.equal((await logout(app.base)).status, 403);
  t.equal((await logout(app.base.replace('http:', 'https:'))).status, 204);
});
