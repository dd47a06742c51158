import t from 'tap';
import { v7 as uuid } from 'uuid';
import { codeOf, tally } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import type { Answer, Client, Issued } from '../../support/client.js';

const { app, client, account, redis } = await startApp(t);
const { mysql } = app.needs;
const FIREFOX = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0';
const SAFARI = 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1';

interface Listed {
  id: string;
  createdAt: string;
  lastUsedAt: string;
  expiresAt: string;
  device: string | null;
  ipAddress: string;
  current: boolean;
}

interface Device {
  from: Client;
  tokens: Issued;
  bearer: Record<string, string>;
  id: string;
}

/** Signs an account in from one more device. */
async function device({ email, password }: { email: string; password: string }, options: { ip?: string; userAgent?: string; deviceName?: string } = {}): Promise<Device> {
  const from = client(options);
  const { deviceName } = options;
  const tokens = (await from.request('POST', '/api/auth/login', { body: { email, password, ...(deviceName === undefined ? {} : { deviceName }) } })).body as unknown as Issued;
  const { sessionId } = (await from.profile(tokens.accessToken)).body as { sessionId: string };
  return { from, tokens, bearer: { authorization: `Bearer ${tokens.accessToken}` }, id: sessionId };
}

const list = async ({ from, bearer }: Pick<Device, 'from' | 'bearer'>): Promise<Listed[]> => (await from.request('GET', '/api/auth/sessions', { headers: bearer })).body['sessions'] as Listed[];
const end = ({ from, bearer }: Pick<Device, 'from' | 'bearer'>, id = ''): Promise<Answer> => from.request('DELETE', `/api/auth/sessions${id === '' ? '' : `/${id}`}`, { headers: bearer });
const lives = async ({ from, tokens }: Device): Promise<boolean> => (await from.profile(tokens.accessToken)).status === 200;

t.test('live sessions are listed, the newest first, by the names that their owner knows the devices by', async (t) => {
  const owner = await account();
  const pc = await device(owner, { ip: '203.0.113.5', userAgent: FIREFOX });
  const phone = await device(owner, { ip: '203.0.113.6', userAgent: SAFARI, deviceName: ' Ann’s phone ' });
  const tablet = await device(owner, { ip: '2001:db8::7', userAgent: SAFARI, deviceName: '  ' });
  const script = await device(owner, { userAgent: 'sync-job/2' });
  await device(await account());
  const listed = await list(phone);
  t.same(listed.map((one) => [one.id, one.device, one.ipAddress, one.current]), [
    [script.id, 'sync-job/2', '127.0.0.1', false],
    [tablet.id, 'Safari on iOS', '2001:db8::7', false],
    [phone.id, 'Ann’s phone', '203.0.113.6', true],
    [pc.id, 'Firefox on Windows', '203.0.113.5', false],
  ]);
  for (const one of listed) {
    t.same(Object.keys(one), ['id', 'createdAt', 'lastUsedAt', 'expiresAt', 'device', 'ipAddress', 'current']);
    for (const time of [one.createdAt, one.lastUsedAt, one.expiresAt]) t.equal(new Date(time).toISOString(), time);
    t.equal(one.lastUsedAt, one.createdAt, 'never refreshed');
    t.ok(one.expiresAt > one.createdAt);
  }
});

t.test('a refresh is the last use of a session, and moves its end', async () => {
  const owner = await account();
  const one = await device(owner);
  await mysql.run('UPDATE sessions SET created_at = created_at - INTERVAL 1 DAY, expires_at = expires_at - INTERVAL 1 DAY WHERE id = ?', [one.id]);
  const [before] = await list(one);
  await one.from.refresh(one.tokens.refreshToken);
  const [after] = await list(one);
  t.equal(after!.createdAt, before!.createdAt);
  t.ok(Date.parse(after!.lastUsedAt) - Date.parse(before!.lastUsedAt) > 86_000_000);
  t.ok(after!.expiresAt > before!.expiresAt);
});

t.test('what has ended is not listed, and the list has an end', async (t) => {
  const owner = await account();
  const one = await device(owner);
  for (const change of ['revoked_at = UTC_TIMESTAMP(3)', 'deleted_at = UTC_TIMESTAMP(3)', 'expires_at = UTC_TIMESTAMP(3)']) await mysql.run(`UPDATE sessions SET ${change} WHERE id = ?`, [(await device(owner)).id]);
  t.same((await list(one)).map(({ id }) => id), [one.id]);
  for (let i = 0; i < 120; i += 1) {
    await mysql.run("INSERT INTO sessions (id, user_id, secret_hash, amr, created_at, expires_at, absolute_expires_at) VALUES (?, ?, REPEAT('x', 32), 'pwd', UTC_TIMESTAMP(3) + INTERVAL ? SECOND, UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3) + INTERVAL 1 DAY)", [uuid(), owner.id, i]);
  }
  const listed = await list(one);
  t.equal(listed.length, 100);
  t.same(listed, [...listed].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)));
  t.equal((await end(one)).status, 204);
  t.same((await list(one)).map(({ id }) => id), [one.id], 'those beyond the list end too');
});

t.test('an ended session is out at once: its access token is 401, its refresh says revoked', async (t) => {
  const owner = await account();
  const [mine, other] = [await device(owner), await device(owner)];
  t.match(await end(mine, other.id), { status: 204, text: '', setCookies: [] });
  t.equal(await lives(other), false);
  t.equal(codeOf(await other.from.refresh(other.tokens.refreshToken)), 'REFRESH_SESSION_REVOKED');
  t.ok(await lives(mine));
  t.equal(codeOf(await end(mine, other.id)), 'NOT_FOUND', 'it is not there any more');
  t.match(await auditOf(owner.id), [{ action: 'session.ended', status: 'success', detail: '{"current":false}' }]);
});

t.test('the current session may end itself; in cookie mode its cookies go too', async (t) => {
  const owner = await account();
  const one = await device(owner);
  t.match(await end(one, one.id), { status: 204, setCookies: [] });
  t.equal(await lives(one), false);

  const browser = client();
  await browser.login(owner.email, owner.password, 'cookie');
  const { sessionId } = (await browser.profile()).body as { sessionId: string };
  const withXsrf = { 'cookie': browser.cookieHeader(), 'x-xsrf-token': browser.jar.get('XSRF-TOKEN')! };
  const answer = await browser.request('DELETE', `/api/auth/sessions/${sessionId}`, { headers: withXsrf });
  t.equal(answer.status, 204);
  t.equal(answer.setCookies.length, 4);
  t.ok(answer.setCookies.every((cookie) => /Max-Age=0/.test(cookie)));
  t.equal((await client().request('GET', '/api/auth/profile', { headers: { cookie: withXsrf.cookie } })).status, 401);
});

t.test("another's session, one that never was, one that ended and no id at all are the same 404", async (t) => {
  const [mine, theirs] = [await device(await account()), await device(await account())];
  const ended = await device(await account());
  await ended.from.request('POST', '/api/auth/logout', { headers: ended.bearer });
  const texts = new Set<string>();
  for (const id of [theirs.id, uuid(), ended.id, 'x', mine.id.toUpperCase(), `${mine.id}%20`, '%00', "' OR '1'='1", mine.id.slice(0, -1)]) {
    const answer = await end(mine, id);
    t.equal(answer.status, 404, id);
    texts.add(answer.text.replace(/"requestId":"[^"]*"/, ''));
  }
  t.equal(texts.size, 1);
  t.ok(await lives(theirs));
  t.ok(await lives(mine));
});

t.test('all other sessions end with one call, those of other accounts do not', async (t) => {
  const owner = await account();
  const [mine, ...others] = [await device(owner), await device(owner), await device(owner), await device(owner)];
  const stranger = await device(await account());
  t.match(await end(mine), { status: 204, setCookies: [] });
  t.same(await Promise.all(others.map(lives)), [false, false, false]);
  for (const other of others) t.equal(codeOf(await other.from.refresh(other.tokens.refreshToken)), 'REFRESH_SESSION_REVOKED');
  t.ok(await lives(mine));
  t.ok(await lives(stranger));
  t.equal(codeOf(await mine.from.refresh(mine.tokens.refreshToken)), 'OK');
  t.equal((await end(mine)).status, 204, 'with nothing left to end');
  t.match(await auditOf(owner.id), [{ action: 'sessions.ended', status: 'success', detail: '{"ended":3}' }]);
});

t.test('of refreshes and the end of their session at once, none outlives it', async (t) => {
  const owner = await account();
  const mine = await device(owner);
  for (let round = 0; round < 10; round += 1) {
    const other = await device(owner);
    const [refreshed] = await Promise.all([other.from.refresh(other.tokens.refreshToken), end(mine, other.id)]);
    const newest = (refreshed.body['refreshToken'] as string | undefined) ?? other.tokens.refreshToken;
    t.equal(codeOf(await other.from.refresh(newest)), 'REFRESH_SESSION_REVOKED');
  }
});

t.test('of many that end one session at once, one is told so', async (t) => {
  const owner = await account();
  const [mine, other] = [await device(owner), await device(owner)];
  t.same(tally(await Promise.all(Array.from({ length: 20 }, () => end(mine, other.id)))), { OK: 1, NOT_FOUND: 19 });
});

t.test('nothing is listed or ended without a credential, nor by a cookie without its XSRF value', async (t) => {
  const owner = await account();
  const other = await device(owner);
  const browser = client();
  await browser.login(owner.email, owner.password, 'cookie');
  const cookie = browser.cookieHeader();
  for (const [method, path] of [['GET', ''], ['DELETE', ''], ['DELETE', `/${other.id}`]] as const) t.equal(codeOf(await client().request(method, `/api/auth/sessions${path}`)), 'UNAUTHENTICATED');
  for (const path of ['', `/${other.id}`]) {
    for (const headers of [{}, { 'x-xsrf-token': 'x' }, { 'x-xsrf-token': browser.jar.get('XSRF-TOKEN')!, 'origin': 'https://evil.example' }]) {
      t.equal(codeOf(await client().request('DELETE', `/api/auth/sessions${path}`, { headers: { cookie, ...headers } })), 'CSRF_FAILED');
    }
  }
  t.ok(await lives(other));
  t.equal((await browser.request('GET', '/api/auth/sessions', { headers: { cookie } })).status, 200, 'reading needs none');
  t.equal((await browser.request('DELETE', '/api/auth/sessions', { headers: { cookie, 'x-xsrf-token': browser.jar.get('XSRF-TOKEN')! } })).status, 204);
  t.equal(await lives(other), false);
});

t.test('sessions are listed and ended while Redis is down', async (t) => {
  const owner = await account();
  const [mine, other] = [await device(owner), await device(owner)];
  await redis.stop();
  t.equal((await list(mine)).length, 2);
  t.equal((await end(mine, other.id)).status, 204);
  t.equal(await lives(other), false);
});

const auditOf = (id: string): Promise<{ action: string; status: string; detail: string | null }[]> =>
  mysql.rows("SELECT action, status, detail FROM audit_log WHERE user_id = ? AND action LIKE 'session%' ORDER BY id", [id]);
