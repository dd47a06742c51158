import t from 'tap';
import type { Account } from '../../support/accounts.js';
import { startApp } from '../../support/app.js';
import { lockOut, WRONG } from '../../support/attempts.js';
import type { Answer, Client } from '../../support/client.js';
import { createLog } from '../../../src/log.js';
import { entriesOf } from '../../../src/store/audit.js';
import { createMysql } from '../../../src/store/mysql.js';

const { app, client, account, env } = await startApp(t, { GEO_HEADER: 'x-geo', LOGIN_DELAYS_S: '0' });
const { mysql } = app.needs;
const PATH = '/api/auth/security-events';

interface Event {
  action: string;
  outcome: string;
  createdAt: string;
  ipAddress: string | null;
  country: string | null;
  sessionId: string | null;
  risks: string[];
}

interface Page {
  events: Event[];
  nextCursor: string | null;
}

interface Reader extends Account {
  sessionId: string;
  browser: Client;
  get: (path: string) => Promise<Answer>;
  read: (query?: string) => Promise<Answer>;
  page: (query?: string) => Promise<Page>;
}

async function signIn(): Promise<Reader> {
  const owner = await account();
  const browser = client({ ip: '198.51.100.1' });
  const { accessToken } = (await browser.login(owner.email, owner.password, 'json', { 'x-geo': 'DE' })).body as { accessToken: string };
  const { sessionId } = (await browser.profile(accessToken)).body as { sessionId: string };
  const get = (path: string): Promise<Answer> => browser.request('GET', path, { headers: { authorization: `Bearer ${accessToken}` } });
  const read = (query = ''): Promise<Answer> => get(PATH + query);
  return { ...owner, sessionId, browser, get, read, page: async (query) => (await read(query)).body as unknown as Page };
}

/** Writes so many entries of an account, told apart by their addresses. */
const write = (id: string, from: number, n: number): Promise<unknown> =>
  mysql.run(`INSERT INTO audit_log (user_id, subject, action, status, ip_address) VALUES ${Array.from({ length: n }, (_, i) => `('${id}', 'x', 'logout', 'success', 'n${from + i}')`).join(', ')}`);
const names = ({ events }: Page): (string | null)[] => events.map(({ ipAddress }) => ipAddress);
const down = (from: number, n: number): string[] => Array.from({ length: n }, (_, i) => `n${from - i}`);

t.test('the owner reads what happened, when, from where and by which session, newest first', async (t) => {
  const reader = await signIn();
  const stranger = client({ ip: '203.0.113.5' });
  await stranger.login(reader.email, WRONG, 'json', { 'x-geo': 'US' });
  await reader.browser.login(reader.email, reader.password, 'json', { 'x-geo': 'FR' });
  await reader.get('/api/auth/account/export');
  const { events, nextCursor } = await reader.page();
  t.equal(nextCursor, null);
  t.same(Object.keys(events[0]!), ['action', 'outcome', 'createdAt', 'ipAddress', 'country', 'sessionId', 'risks']);
  t.match(events, [
    { action: 'account.exported', outcome: 'success', ipAddress: '198.51.100.1', country: null, sessionId: reader.sessionId, risks: [] },
    { action: 'login', outcome: 'success', country: 'FR', sessionId: /^[0-9a-f-]{36}$/, risks: ['new_country'] },
    { action: 'login', outcome: 'failure', ipAddress: '203.0.113.5', country: 'US', sessionId: null, risks: [] },
    { action: 'login', outcome: 'success', ipAddress: '198.51.100.1', country: 'DE', sessionId: reader.sessionId, risks: [] },
  ]);
  t.equal(events.length, 4);
  for (const { createdAt } of events) t.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 10_000);
  t.same(events.map(({ createdAt }) => createdAt), events.map(({ createdAt }) => createdAt).sort().reverse());
});

t.test('a lock shows as such, and how the gate came to it does not', async (t) => {
  const reader = await signIn();
  await lockOut(client({ ip: '203.0.113.6' }), reader.email);
  const answer = await reader.read();
  t.same((answer.body as unknown as Page).events.map(({ outcome }) => outcome), ['locked', 'failure', 'failure', 'failure', 'failure', 'success']);
  t.notMatch(answer.text, /INVALID_CREDENTIALS|detail|subject|step|until/);
});

t.test('pages follow each other without gap or repeat, whatever is written meanwhile', async (t) => {
  const reader = await signIn();
  await write(reader.id, 1, 25);
  const first = await reader.page('?limit=10');
  t.same(names(first), down(25, 10));
  await write(reader.id, 26, 7);
  const second = await reader.page(`?limit=10&cursor=${first.nextCursor}`);
  t.same(names(second), down(15, 10));
  const third = await reader.page(`?limit=10&cursor=${second.nextCursor}`);
  t.same(names(third), [...down(5, 5), '198.51.100.1'], 'the login at the end');
  t.equal(third.nextCursor, null);
  t.same(names(await reader.page(`?limit=10&cursor=${first.nextCursor}`)), names(second), 'a cursor may be used again');
  t.same(names(await reader.page('?limit=1')), ['n32']);
});

t.test('a page has 50 events unless told, and 100 at most', async (t) => {
  const reader = await signIn();
  await write(reader.id, 1, 149);
  t.equal((await reader.page()).events.length, 50);
  t.equal((await reader.page('?limit=51')).events.length, 51);
  const { events, nextCursor } = await reader.page('?limit=100');
  t.equal(events.length, 100);
  const last = await reader.page(`?limit=50&cursor=${nextCursor}`);
  t.equal(last.events.length, 50, 'the last page is full');
  t.equal(last.nextCursor, null, 'and still the last');
});

t.test('nobody reads what happened to another, by another’s cursor either', async (t) => {
  const [reader, other] = [await signIn(), await signIn()];
  await write(reader.id, 1, 3);
  const { nextCursor } = await reader.page('?limit=1');
  t.match(await other.read(`?cursor=${nextCursor}`), { status: 400, body: { code: 'INVALID_REQUEST', errors: [{ path: '/cursor' }] } });
  t.same((await other.page()).events.map(({ sessionId }) => sessionId), [other.sessionId]);
});

t.test('a cursor tells no numbers, and one that was made up or changed is refused', async (t) => {
  const reader = await signIn();
  await write(reader.id, 1, 3);
  const { nextCursor } = (await reader.page('?limit=1')) as { nextCursor: string };
  const again = (await reader.page('?limit=1')).nextCursor!;
  t.not(again.slice(-24), nextCursor.slice(-24), 'the same place looks different each time');
  const changed = `${nextCursor.slice(0, 20)}${nextCursor[20] === 'A' ? 'B' : 'A'}${nextCursor.slice(21)}`;
  for (const cursor of ['', 'x', '5', changed, nextCursor.slice(0, -4), 'A'.repeat(48), 'A'.repeat(65), '%00', '%F0%9F%98%80']) t.match(await reader.read(`?cursor=${cursor}`), { status: 400, body: { code: 'INVALID_REQUEST' } }, cursor);
  for (const limit of ['0', '101', '-1', '1.5', '1e1', '', ' 5', '0x10', '05', '5&limit=6']) t.match(await reader.read(`?limit=${limit}`), { status: 400, body: { code: 'INVALID_REQUEST' } }, limit);
  t.equal((await reader.read('?limit=5&other=1')).status, 200);
});

t.test('it takes a signed-in user', async (t) => {
  t.match(await client().request('GET', PATH), { status: 401, body: { code: 'UNAUTHENTICATED' } });
  t.match(await client().request('POST', PATH), { status: 405 });
});

t.test('a page costs its own rows, wherever it stands in a long log', async (t) => {
  const reader = await signIn();
  const digits = `(SELECT 0 n ${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `UNION SELECT ${n}`).join(' ')})`;
  // Two of five entries are the reader's.
  for (let part = 0; part < 6; part += 1) await mysql.run(`INSERT INTO audit_log (user_id, subject, action, status) SELECT IF(a.n < 4, ?, CONCAT('u', a.n, b.n)), 'x', 'login', 'success' FROM ${digits} a, ${digits} b, ${digits} c, ${digits} d`, [reader.id]);
  const [oldest] = await mysql.rows<{ id: number }>('SELECT MIN(id) AS id FROM audit_log');
  // One connection, whose counters are this test's alone.
  const single = createMysql({ url: env['MYSQL_URL']!, connections: 1, log: createLog('silent') });
  t.teardown(() => single.close());
  const reads = async (): Promise<number> => (await single.rows<{ Value: string }>("SHOW SESSION STATUS LIKE 'Handler_read%'")).reduce((sum, { Value }) => sum + Number(Value), 0);
  for (const before of [null, oldest!.id + 30_000, oldest!.id + 10_000, oldest!.id]) {
    const since = await reads();
    const entries = await entriesOf(single, reader.id, before, 51);
    // The counters themselves are read as rows of a table, by some servers.
    const own = await reads();
    const counting = (await reads()) - own;
    t.ok(own - since - counting <= 60, `${entries.length} entries before ${before} took ${own - since - counting} reads`);
  }
});
