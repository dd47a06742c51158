import t from 'tap';
import { codeOf, pause } from '../support/attempts.js';
import { startApp } from '../support/app.js';
import type { Answer, Client, Issued } from '../support/client.js';
import { figure } from '../support/figures.js';

const ALLOWED = 'https://app.example.com';
const { app, client, account } = await startApp(t, { CORS_ORIGINS: ALLOWED });
const { mysql } = app.needs;
const user = await account();
const other = client();
await other.login(user.email, user.password, 'cookie');

async function browser(): Promise<Client> {
  const from = client();
  await from.login(user.email, user.password, 'cookie');
  return from;
}

const cookie = (from: Client, without: string[] = []): string => [...from.jar].filter(([name]) => !without.includes(name)).map(([name, value]) => `${name}=${value}`).join('; ');
const generations = async (): Promise<number> => Number((await mysql.rows<{ n: unknown }>('SELECT SUM(generation) + SUM(revoked_at IS NOT NULL) AS n FROM sessions'))[0]!.n);

t.test('a browser lives through login, profile, refresh and logout without ever seeing a token', async (t) => {
  const from = await browser();
  t.equal((await from.profile()).status, 200);
  const before = new Map(from.jar);
  const refreshed = await from.refreshByCookie();
  t.equal(refreshed.text, '{"ok":true}');
  t.equal(refreshed.setCookies.length, 4);
  for (const [name, value] of from.jar) t.not(value, before.get(name), `${name} is new`);
  t.equal(refreshed.headers.get('x-xsrf-token'), from.jar.get('XSRF-TOKEN'));
  t.equal((await from.profile()).status, 200);
  t.equal((await from.request('POST', '/api/auth/logout', { headers: { 'cookie': from.cookieHeader(), 'x-xsrf-token': from.jar.get('XSRF-TOKEN')! } })).status, 204);
  t.equal(from.jar.size, 0);
  t.equal((await from.profile()).status, 401);
});

// What may be wrong with a request whose credential is a cookie. Each entry gives headers on top of the right ones.
const forgeries: Record<string, (from: Client) => Record<string, string>> = {
  'no XSRF header': () => ({ 'x-xsrf-token': '' }),
  'a wrong header': (from) => ({ 'x-xsrf-token': from.jar.get('XSRF-TOKEN')!.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')) }),
  'the header and cookie of another session': (from) => ({ 'x-xsrf-token': other.jar.get('XSRF-TOKEN')!, 'cookie': `${cookie(from, ['XSRF-TOKEN'])}; XSRF-TOKEN=${other.jar.get('XSRF-TOKEN')!}` }),
  'header and cookie equal but made up': (from) => ({ 'x-xsrf-token': 'x'.repeat(64), 'cookie': `${cookie(from, ['XSRF-TOKEN'])}; XSRF-TOKEN=${'x'.repeat(64)}` }),
  'header and cookie empty': (from) => ({ 'x-xsrf-token': '', 'cookie': `${cookie(from, ['XSRF-TOKEN'])}; XSRF-TOKEN=` }),
  'the cookie alone missing': (from) => ({ cookie: cookie(from, ['XSRF-TOKEN']) }),
  'two XSRF cookies': (from) => ({ cookie: `${from.cookieHeader()}; XSRF-TOKEN=${from.jar.get('XSRF-TOKEN')!}` }),
  'two values in the header': (from) => ({ 'x-xsrf-token': `${from.jar.get('XSRF-TOKEN')!}, ${from.jar.get('XSRF-TOKEN')!}` }),
  'a bogus bearer beside the cookie and no XSRF header': () => ({ 'authorization': 'Bearer bogus', 'x-xsrf-token': '' }),
  'Sec-Fetch-Site cross-site': () => ({ 'sec-fetch-site': 'cross-site' }),
  'an Origin that is not allowed': () => ({ origin: 'https://evil.example.com' }),
  'Origin null': () => ({ origin: 'null' }),
  'an Origin that only begins like the allowed one': () => ({ origin: `${ALLOWED}.evil.example` }),
};

t.test('a change that a cookie authenticates needs the XSRF value of its session, and its own site', async (t) => {
  const from = await browser();
  const all = await generations();
  for (const [what, headers] of Object.entries(forgeries)) {
    const right = { 'cookie': from.cookieHeader(), 'x-xsrf-token': from.jar.get('XSRF-TOKEN')! };
    const before = await generations();
    for (const [path, more] of [['/api/auth/refresh', { 'x-token-delivery': 'cookie' }], ['/api/auth/logout', {}]] as [string, Record<string, string>][]) {
      const answer = await from.request('POST', path, { headers: { ...right, ...more, ...headers(from) } });
      t.match(answer, { status: 403, body: { code: 'CSRF_FAILED' } }, `${path}: ${what}`);
      t.same(answer.setCookies, []);
    }
    t.equal(await generations(), before, 'nothing changed');
  }
  const changes = (await generations()) - all;
  figure(t, 'T53', { did: `${Object.keys(forgeries).length} classes of forged refresh and logout with the cookies of a session`, figure: `${changes} rows changed`, ok: changes === 0 });
  for (const origin of [ALLOWED]) t.equal((await from.refreshByCookie({ origin, 'sec-fetch-site': 'same-site' })).status, 200);
});

t.test('a valid bearer needs no XSRF value, whatever cookies come along', async (t) => {
  const from = await browser();
  const { accessToken } = (await client().login(user.email, user.password)).body as unknown as Issued;
  const answer = await from.request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${accessToken}`, cookie: from.cookieHeader() } });
  t.equal(answer.status, 204);
  t.equal((await from.profile(accessToken)).status, 401);
});

t.test('a login for cookies is refused from a foreign site; one for json is not, since nothing stays in the browser', async (t) => {
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example.com' }] as Record<string, string>[]) {
    t.match(await client().login(user.email, user.password, 'cookie', headers), { status: 403, body: { code: 'CSRF_FAILED' }, setCookies: [] });
    t.equal(codeOf(await client().login(user.email, user.password, 'json', headers)), 'OK');
  }
  t.equal(codeOf(await client().login(user.email, user.password, 'cookie', { origin: ALLOWED, 'sec-fetch-site': 'same-site' })), 'OK');
});

t.test('a form cannot log in: the body must be JSON by its type', async (t) => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    t.match(await client().request('POST', '/api/auth/login', { raw: JSON.stringify({ email: user.email, password: user.password }), headers: { 'content-type': type, 'x-token-delivery': 'cookie' } }), { status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' }, setCookies: [] });
  }
});

t.test('cookies never become readable tokens: json mode takes the token from the body only', async (t) => {
  const from = await browser();
  const xsrf = from.jar.get('XSRF-TOKEN')!;
  let [asked, minted] = [0, 0];
  for (const delivery of [{}, { 'x-token-delivery': 'json' }] as Record<string, string>[]) {
    const bodies: unknown[] = [undefined, {}, { refreshToken: '' }, { refreshToken: null }];
    for (const body of bodies) {
      const answer = await from.request('POST', '/api/auth/refresh', { ...(body === undefined ? {} : { body }), headers: { ...delivery, 'cookie': from.cookieHeader(), 'x-xsrf-token': xsrf } });
      t.ok([400, 401, 415].includes(answer.status), String(answer.status));
      t.notMatch(answer.text, /accessToken":/);
      asked += 1;
      if (answer.text.includes('accessToken"')) minted += 1;
    }
  }
  t.equal((await from.refreshByCookie()).status, 200, 'and the session is not harmed');
  figure(t, 'T24', { did: `${asked} refreshes with cookies, without a header and with json`, figure: `${minted} tokens in a body`, ok: minted === 0 });
});

t.test('in cookie mode a token in the body is ignored', async (t) => {
  const { refreshToken } = (await client().login(user.email, user.password)).body as unknown as Issued;
  const answer = await client().request('POST', '/api/auth/refresh', { body: { refreshToken }, headers: { 'x-token-delivery': 'cookie' } });
  t.match(answer, { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' } });
  t.equal((await client().refresh(refreshToken)).status, 200);
});

t.test('two refresh cookies, or two jti cookies, are refused and end nothing', async (t) => {
  const from = await browser();
  const headers = { 'x-token-delivery': 'cookie', 'cookie': from.cookieHeader(), 'x-xsrf-token': from.jar.get('XSRF-TOKEN')! };
  for (const name of ['idp_rt', 'idp_jti']) {
    const answer = await client().request('POST', '/api/auth/refresh', { headers: { ...headers, cookie: `${headers.cookie}; ${name}=${from.jar.get(name)!}` } });
    t.match(answer, { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' } }, name);
  }
  t.equal((await client().request('POST', '/api/auth/refresh', { headers })).status, 200);
});

t.test('a jti cookie of another session makes the token invalid', async (t) => {
  const from = await browser();
  const answer = await from.request('POST', '/api/auth/refresh', { headers: { 'x-token-delivery': 'cookie', 'cookie': `${cookie(from, ['idp_jti'])}; idp_jti=${other.jar.get('idp_jti')!}`, 'x-xsrf-token': from.jar.get('XSRF-TOKEN')! } });
  t.match(answer, { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' } });
});

t.test('a refused refresh clears the cookies, but not those of a tab that was merely late', async (t) => {
  const from = await browser();
  const former = { 'cookie': from.cookieHeader(), 'x-xsrf-token': from.jar.get('XSRF-TOKEN')! };
  await from.refreshByCookie();
  await pause(20);
  const late: Answer = await from.request('POST', '/api/auth/refresh', { headers: { 'x-token-delivery': 'cookie', ...former } });
  t.match(late, { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' }, setCookies: [] });
  t.equal((await from.refreshByCookie()).status, 200);
  await mysql.run('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3) WHERE revoked_at IS NULL');
  const ended = await from.refreshByCookie();
  t.match(ended, { status: 401, body: { code: 'REFRESH_SESSION_REVOKED' } });
  t.equal(ended.setCookies.length, 4);
  t.equal(from.jar.size, 0);
});

t.test('COOKIE_DOMAIN_XSRF widens the readable cookie alone', async (t) => {
  const wide = await startApp(t, { COOKIE_DOMAIN_XSRF: 'example.com' });
  const { email, password } = await wide.account();
  const { setCookies } = await wide.client().login(email, password, 'cookie');
  t.same(setCookies.map((one) => /Domain=/.test(one)), [false, false, false, true]);
  t.match(setCookies[3], /; Domain=example\.com$/);
});
