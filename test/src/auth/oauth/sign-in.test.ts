import t, { type Test } from 'tap';
import { codeOf } from '../../../support/attempts.js';
import { openInbox } from '../../../support/inbox.js';
import { everyKey, flushEvery } from '../../../support/keyspace.js';
import { fragmentOf, openBrowser, startOAuthApp, type Step } from '../../../support/oidc.js';
import { exchange } from '../../../support/raw.js';

const inbox = openInbox(t);
const { app, base, client, oidc, start, signIn } = await startOAuthApp(t, inbox.settings);
const { mysql, redis } = app.needs;

const claimsOf = (token: string): Record<string, unknown> => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>;
const usersOf = (email: string): Promise<{ id: string; passwordHash: string | null }[]> => mysql.rows('SELECT id, password_hash AS passwordHash FROM users WHERE email = ?', [email]);
const sessionsOf = (userId: string): Promise<{ id: string; life: number }[]> =>
  mysql.rows('SELECT id, TIMESTAMPDIFF(SECOND, created_at, expires_at) AS life FROM sessions WHERE user_id = ? ORDER BY created_at', [userId]);

function checkHeaders(t: Test, { headers }: Step): void {
  t.same(headers.getSetCookie(), [], 'no cookie');
  t.equal(headers.get('cache-control'), 'no-store');
  t.equal(headers.get('referrer-policy'), 'no-referrer');
}

t.test('a new person gets an account with their verified address and names, and tokens in the fragment', async (t) => {
  oidc.people['ann-1'] = { email: 'Ann@Example.com', email_verified: true, given_name: 'Ann', family_name: 'Lee\r\nBcc: x' };
  const browser = openBrowser('ann-1');
  const first = await browser.visit(start());
  t.equal(first.status, 302);
  checkHeaders(t, first);
  const asked = new URL(first.location!);
  t.equal(asked.origin, oidc.issuer);
  t.match(Object.fromEntries(asked.searchParams), { response_type: 'code', client_id: 'portcullis', scope: 'openid email profile', redirect_uri: `${base}/api/auth/oauth/test/callback`, code_challenge_method: 'S256', code_challenge: /^[\w-]{43}$/, nonce: /^[\w-]{43}$/, state: /^[\w-]{43}$/ });

  const last = await browser.visit(await browser.toCallback(start()));
  checkHeaders(t, last);
  const given = fragmentOf(last);
  t.same(Object.keys(given), ['access_token', 'refresh_token', 'jti', 'token_type', 'expires_in']);
  t.match(given, { token_type: 'Bearer', expires_in: '60' });

  const me = await client().profile(given['access_token']);
  t.match(me, { status: 200, body: { email: 'ann@example.com', emailVerified: true, status: 'active', profiles: [{ provider: 'test', givenName: 'Ann', familyName: 'Lee Bcc: x' }] } });
  t.equal((me.body['profiles'] as unknown[]).length, 1);
  t.match(claimsOf(given['access_token']!), { amr: ['fed'], sid: me.body['sessionId'] });

  const [user] = await usersOf('ann@example.com');
  t.equal(user!.passwordHash, null);
  const events = await mysql.rows<{ message: string }>('SELECT message FROM event_outbox WHERE user_id = ?', [user!.id]);
  t.match(events.map(({ message }) => JSON.parse(message) as unknown), [{ type: 'identity.user.registered', userId: user!.id, email: 'ann@example.com', provider: 'test' }]);
  const audit = await mysql.rows<{ entry: string }>("SELECT CONCAT(action, ' ', status) AS entry FROM audit_log WHERE user_id = ? ORDER BY id", [user!.id]);
  t.same(audit.map(({ entry }) => entry), ['account.created success', 'oauth success']);
  t.equal(codeOf(await client().login('ann@example.com', 'any password')), 'INVALID_CREDENTIALS', 'there is no password yet');
});

t.test('a later sign-in goes by the subject, whatever the address has become', async (t) => {
  oidc.people['bob-1'] = { email: 'bob@example.com', email_verified: true };
  const before = claimsOf((await signIn('bob-1'))['access_token']!)['sub'];
  for (const now of [{ email: 'robert@example.com', email_verified: true }, { email: 'bob@example.com', email_verified: false }, {}]) {
    oidc.people['bob-1'] = now;
    t.equal(claimsOf((await signIn('bob-1'))['access_token']!)['sub'], before);
  }
  t.equal((await usersOf('robert@example.com')).length, 0);
});

t.test('a token from the fragment is good for 60 s, and the first refresh makes the session a full one', async (t) => {
  oidc.people['cid-1'] = { email: 'cid@example.com', email_verified: true };
  const given = await signIn('cid-1');
  const { sub, iat, exp } = claimsOf(given['access_token']!) as { sub: string; iat: number; exp: number };
  t.equal(exp - iat, 60, 'the access token ends with the session');
  t.equal((await sessionsOf(sub))[0]!.life, 60);
  const refreshed = await client().refresh(given['refresh_token'], { jti: given['jti'] });
  t.match(refreshed, { status: 200, body: { expiresIn: 900 } });
  t.equal((await sessionsOf(sub))[0]!.life, 14 * 24 * 3600);
  t.match(await client().refresh(refreshed.body['refreshToken']), { status: 200 });

  const late = await signIn('cid-1');
  await mysql.run('UPDATE sessions SET created_at = created_at - INTERVAL 61 SECOND, expires_at = expires_at - INTERVAL 61 SECOND WHERE user_id = ? AND generation = 0', [sub]);
  t.equal(codeOf(await client().profile(late['access_token'])), 'UNAUTHENTICATED');
  t.equal(codeOf(await client().refresh(late['refresh_token'])), 'REFRESH_SESSION_EXPIRED');
});

t.test('the state of a client comes back with tokens and with errors', async (t) => {
  oidc.people['dan-1'] = { email: 'dan@example.com', email_verified: true };
  const state = 'a b&c=d#ä\r\nX: y';
  t.match(await signIn('dan-1', { state }), { access_token: String, state });
  t.match(await signIn('nobody', { state }), { error: 'access_denied', state });
  t.match(await openBrowser('dan-1').visit(start({ state: 'x'.repeat(513) })), { status: 400 });
});

t.test('each listed redirect URI gets its own tokens, with the fragment behind it', async (t) => {
  const browser = openBrowser('dan-1');
  const step = await browser.visit(await browser.toCallback(start({ redirect_uri: 'http://localhost:3000/cb' })));
  t.match(fragmentOf(step, 'http://localhost:3000/cb'), { access_token: String });
});

t.test('two sign-ins at once of a person who is new make one account and two sessions', async (t) => {
  oidc.people['eve-1'] = { email: 'eve@example.com', email_verified: true, given_name: 'Eve' };
  const browsers = Array.from({ length: 6 }, () => openBrowser('eve-1'));
  const callbacks = await Promise.all(browsers.map((browser) => browser.toCallback(start())));
  const ends = await Promise.all(browsers.map(async (browser, i) => fragmentOf(await browser.visit(callbacks[i]!))));
  t.same(ends.map((end) => end['error']).filter(Boolean), []);
  t.equal(new Set(ends.map((end) => claimsOf(end['access_token']!)['sub'])).size, 1);
  const users = await usersOf('eve@example.com');
  t.equal(users.length, 1);
  t.equal((await sessionsOf(users[0]!.id)).length, 6);
  for (const table of ['profiles', 'oauth_identities', 'event_outbox']) t.equal((await mysql.rows(`SELECT 1 FROM ${table} WHERE user_id = ?`, [users[0]!.id])).length, 1, table);
});

t.test('a flow that waits is kept for ten minutes, without its state and without a word in clear', async (t) => {
  await flushEvery(redis);
  const { location } = await openBrowser('ann-1').visit(start({ state: 'client-state' }));
  const state = new URL(location!).searchParams.get('state')!;
  const [key, ...others] = await everyKey(redis, 'idp:*:oauth');
  t.same(others, []);
  t.notMatch(key, state);
  const left = await redis.pttl(key!);
  t.ok(left > 590_000 && left <= 600_000, `${left} ms`);
  const value = (await redis.get(key!))!;
  for (const word of ['app.example.com', 'client-state', state, 'test']) t.notOk(value.includes(word) || Buffer.from(value, 'base64url').includes(word), word);
});

t.test('providers send browsers back to PUBLIC_URL, else to the host that was asked, if it is one', async (t) => {
  const named = await startOAuthApp(t, { PUBLIC_URL: 'https://id.example.com/base/' });
  const callbackOf = (step: { location: string | null }): string | null => new URL(step.location!).searchParams.get('redirect_uri');
  t.equal(callbackOf(await openBrowser('ann-1').visit(named.start())), 'https://id.example.com/base/api/auth/oauth/test/callback');
  const path = start().slice(base.length);
  const asked = (host: string) => exchange(app.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  t.equal(callbackOf({ location: (await asked('ID.example.com:8443')).headers.get('location')![0]! }), 'http://id.example.com:8443/api/auth/oauth/test/callback');
  for (const host of ['evil.example/x?', 'a@b', 'a b', 'a:b', '%0d%0a', 'a:99999', '256.256.256.256', '[::', '[::1']) t.match(await asked(host), { status: 400, problem: { code: 'INVALID_REQUEST' } }, host);
});
