import t from 'tap';
import { codeOf } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import type { Answer, Client } from '../../support/client.js';

const APP = 'https://app.example.com';
const { client, account } = await startApp(t, { CORS_ORIGINS: APP });

async function browser(): Promise<Client> {
  const { email, password } = await account();
  const from = client();
  await from.login(email, password, 'cookie');
  return from;
}

const ask = (from: Client, headers: Record<string, string> = {}): Promise<Answer> => from.request('GET', '/api/auth/csrf', { headers: { cookie: from.cookieHeader(), ...headers } });
const logout = (from: Client, token: unknown): Promise<Answer> => from.request('POST', '/api/auth/logout', { headers: { 'cookie': from.cookieHeader(), 'x-xsrf-token': token as string } });

t.test('a browser is told the token that it has', async (t) => {
  const from = await browser();
  const answer = await ask(from);
  t.same(answer.body, { token: from.jar.get('XSRF-TOKEN') });
  t.same(answer.setCookies, [], 'other tabs go on with theirs');
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.equal(codeOf(await logout(from, answer.body['token'])), 'OK');
});

t.test('a browser that lost its token, or has one of another session, gets a good one', async (t) => {
  const foreign = (await browser()).jar.get('XSRF-TOKEN')!;
  for (const lost of [null, '', 'x', foreign]) {
    const from = await browser();
    const before = from.jar.get('XSRF-TOKEN');
    if (lost === null) from.jar.delete('XSRF-TOKEN');
    else from.jar.set('XSRF-TOKEN', lost);
    const { body, setCookies } = await ask(from);
    t.equal(setCookies.length, 1);
    t.match(setCookies[0], /^XSRF-TOKEN=[\w-]+; Max-Age=\d+; Path=\/; Secure; SameSite=Strict$/);
    const maxAge = Number(/Max-Age=(\d+)/.exec(setCookies[0]!)![1]);
    t.ok(maxAge <= 14 * 86_400 && maxAge > 14 * 86_400 - 60, 'it lives as long as the session');
    t.equal(body['token'], from.jar.get('XSRF-TOKEN'));
    t.not(body['token'], before);
    t.equal(codeOf(await logout(from, body['token'])), 'OK');
  }
});

t.test('to a Bearer no cookie is set', async (t) => {
  const { email, password } = await account();
  const from = client();
  const { accessToken } = (await from.login(email, password)).body;
  const answer = await from.request('GET', '/api/auth/csrf', { headers: { authorization: `Bearer ${accessToken as string}` } });
  t.match(answer, { status: 200, setCookies: [], body: { token: /^[\w-]{64}$/ } });
});

t.test('no page of another origin can read it unless CORS_ORIGINS names the origin', async (t) => {
  const from = await browser();
  for (const origin of ['https://evil.example', 'null', `${APP}.evil.example`, APP.replace('https', 'http')]) {
    const answer = await ask(from, { origin });
    t.equal(answer.headers.get('access-control-allow-origin'), null, origin);
    t.equal(answer.headers.get('cross-origin-resource-policy'), 'same-site');
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  }
  t.equal((await ask(from, { origin: APP })).headers.get('access-control-allow-origin'), APP);
});

t.test('there is none without a session', async (t) => {
  const from = await browser();
  t.equal(codeOf(await client().request('GET', '/api/auth/csrf')), 'UNAUTHENTICATED');
  const cookie = from.cookieHeader();
  await logout(from, from.jar.get('XSRF-TOKEN'));
  t.equal(codeOf(await client().request('GET', '/api/auth/csrf', { headers: { cookie } })), 'UNAUTHENTICATED');
  t.equal(codeOf(await client().request('GET', '/api/auth/csrf', { headers: { cookie: `${cookie}; idp_at=x` } })), 'UNAUTHENTICATED');
});
