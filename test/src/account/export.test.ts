import { get } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import t from 'tap';
import type { Account } from '../../support/accounts.js';
import { startApp, type TestApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { parseCsv } from '../../support/csv.js';
import { figure } from '../../support/figures.js';
import { furnish } from '../../support/personal.js';

const PATHS = ['/api/auth/account/export', '/auth/account/export'];

interface Signed {
  account: Account;
  token: string;
  export: (query?: string, path?: string) => Promise<Answer>;
}

async function signIn({ client, account: create }: TestApp, name: Parameters<TestApp['account']>[0] = {}): Promise<Signed> {
  const account = await create(name);
  const browser = client({ userAgent: 'exporter' });
  const token = (await browser.login(account.email, account.password)).body['accessToken'] as string;
  const fetchExport = (query = '', path = PATHS[0]!): Promise<Answer> => browser.request('GET', path + query, { headers: { authorization: `Bearer ${token}` } });
  return { account, token, export: fetchExport };
}

const sheetsOf = (answer: Answer): Record<string, string[][]> => Object.fromEntries(Object.entries(answer.body['sheets'] as Record<string, string>).map(([name, text]) => [name, parseCsv(text)]));
const iso = (at: unknown): string => (at as Date).toISOString();

const HEADERS = {
  user: ['id', 'email', 'createdAt', 'status', 'phoneVerified', 'emailVerified'],
  profiles: ['provider', 'givenName', 'familyName', 'createdAt'],
  roles: ['id', 'name', 'description'],
  tenants: ['id', 'name', 'slug'],
  sessions: ['id', 'createdAt', 'expiresAt', 'device', 'ipAddress', 'revokedAt'],
  mfa: ['method', 'verified', 'createdAt'],
  auditLog: ['action', 'createdAt', 'ipAddress', 'status'],
};

const HOSTILE = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\0x', '"', '""', 'a"b', 'a,b', 'a\r\nb', 'a\nb', 'a\rb', ' a ', "'", '😀', '\u{1F468}\u200D\u{1F469}', '\u2028', '\\', '</script>', 'ＫＥＬＶＩＮ', 'a=b'];
const RUNS = /^[=+\-@\t\r\0]/;
const defused = (name: string): string => (RUNS.test(name) ? `'${name}` : name);

t.test('the export', async (t) => {
  const service = await startApp(t);
  const { mysql } = service.app.needs;

  t.test('as JSON shows exactly the fields of the document, from the caller’s rows alone', async (t) => {
    const other = await signIn(service);
    await furnish(service.app.needs, other.account, ['Somebody else']);
    const caller = await signIn(service, { phone: '+4912345' });
    const { id, email } = caller.account;
    await furnish(service.app.needs, caller.account, ['Zoë']);
    const answer = await caller.export();
    const one = async <T>(sql: string): Promise<T[]> => mysql.rows<T>(sql, [id]);
    const [user] = await one<{ created_at: Date }>('SELECT * FROM users WHERE id = ?');
    const [profile] = await one<{ created_at: Date }>('SELECT * FROM profiles WHERE user_id = ?');
    const roles = await one('SELECT r.id, r.name, r.description FROM roles r JOIN user_roles ur ON ur.role_id = r.id WHERE ur.user_id = ?');
    const tenants = await one('SELECT n.id, n.name, n.slug FROM tenants n JOIN user_tenants ut ON ut.tenant_id = n.id WHERE ut.user_id = ?');
    const [session] = await one<{ id: string; created_at: Date }>('SELECT * FROM sessions WHERE user_id = ?');
    const [factor] = await one<{ created_at: Date }>('SELECT * FROM mfa_factors WHERE user_id = ?');
    const audit = await one<{ action: string; created_at: Date }>('SELECT * FROM audit_log WHERE user_id = ? ORDER BY id');
    const { exportedAt, ...document } = answer.body;
    t.equal(answer.status, 200);
    t.match(exportedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    t.ok(Math.abs(Date.parse(exportedAt as string) - Date.now()) < 10_000);
    t.strictSame(document, {
      user: { id, email, createdAt: iso(user!.created_at), status: 'active', phoneVerified: true, emailVerified: true },
      profiles: [{ provider: 'google', givenName: 'Zoë', familyName: 'xZoë', createdAt: iso(profile!.created_at) }],
      roles,
      tenants,
      sessions: [{ id: session!.id, createdAt: iso(session!.created_at), device: 'exporter', ipAddress: '127.0.0.1' }],
      mfa: [{ method: 'totp', verified: true, createdAt: iso(factor!.created_at) }],
      auditLog: audit.map((entry) => ({ action: entry.action, createdAt: iso(entry.created_at), ipAddress: '127.0.0.1' })),
    });
    t.same(audit.map((entry) => entry.action), ['login', 'account.exported'], 'and is itself an entry of the audit log');
    t.same(Object.keys(answer.body), ['exportedAt', 'user', 'profiles', 'roles', 'tenants', 'sessions', 'mfa', 'auditLog']);
  });

  t.test('as CSV has the columns of each sheet and every value', async (t) => {
    const caller = await signIn(service, { verified: false });
    await furnish(service.app.needs, caller.account, ['Zoë']);
    const answer = await caller.export('?format=csv');
    t.same(Object.keys(answer.body), ['exportedAt', 'sheets']);
    const sheets = sheetsOf(answer);
    t.same(Object.fromEntries(Object.entries(sheets).map(([name, rows]) => [name, rows[0]])), HEADERS);
    t.same(Object.keys(sheets), Object.keys(HEADERS));
    const [session] = await mysql.rows<Record<string, Date | string>>('SELECT * FROM sessions WHERE user_id = ?', [caller.account.id]);
    t.same(sheets['user']![1]!.slice(3), ['active', 'false', 'false']);
    t.same(sheets['user']![1]!.slice(0, 2), [caller.account.id, caller.account.email]);
    t.same(sheets['sessions']!.slice(1), [[session!['id'], iso(session!['created_at']), iso(session!['expires_at']), 'exporter', '127.0.0.1', '']]);
    t.same(sheets['mfa']![1]!.slice(0, 2), ['totp', 'true']);
    t.same(sheets['tenants']![1]![1], 'Ärzte, GmbH');
    t.same(sheets['roles']![1]![2], 'may "read", and write');
    t.same(sheets['auditLog']!.slice(1).map(([action, , ip, status]) => [action, ip, status]), [['login', '127.0.0.1', 'success'], ['account.exported', '127.0.0.1', 'success']]);
  });

  t.test('has a header in every sheet and an empty list for what there is none of', async (t) => {
    const caller = await signIn(service);
    const { sheets } = (await caller.export('?format=csv')).body as { sheets: Record<string, string> };
    t.same(
      ['profiles', 'roles', 'tenants', 'mfa'].map((name) => sheets[name]),
      ['provider,givenName,familyName,createdAt\r\n', 'id,name,description\r\n', 'id,name,slug\r\n', 'method,verified,createdAt\r\n'],
    );
    t.match((await caller.export()).body, { profiles: [], roles: [], tenants: [], mfa: [] });
  });

  t.test('carries hostile names through unharmed, with cells that a spreadsheet would run defused', async (t) => {
    const caller = await signIn(service);
    await furnish(service.app.needs, caller.account, HOSTILE);
    const inJson = (await caller.export()).body['profiles'] as { givenName: string }[];
    t.same(inJson.map((profile) => profile.givenName).sort(), [...HOSTILE].sort());
    const answer = await caller.export('?format=csv');
    const rows = sheetsOf(answer)['profiles']!.slice(1);
    t.same(rows.map((row) => row[1]).sort(), HOSTILE.map(defused).sort());
    t.same(rows.map((row) => row[2]).sort(), HOSTILE.map((name) => `x${name}`).sort(), 'a trigger further on is left alone');
    const running = Object.values(sheetsOf(answer)).flat(2).filter((cell) => RUNS.test(cell));
    const whole = JSON.stringify(rows.map((row) => row[1]).sort()) === JSON.stringify(HOSTILE.map(defused).sort());
    figure(t, 'T55', { did: `${HOSTILE.length} hostile names exported as CSV, read by a strict parser`, figure: `${running.length} cells that a spreadsheet would run; ${whole ? 'all' : 'not all'} values come back`, ok: running.length === 0 && whole });
    t.same(rows, sheetsOf(await caller.export('?format=csv'))['profiles']!.slice(1), 'in the same order each time');
  });

  t.test('answers below both prefixes, to a bearer token and to the cookie, as an attachment', async (t) => {
    const caller = await signIn(service);
    for (const path of PATHS) {
      const answer = await caller.export('', path);
      t.equal(answer.status, 200);
      t.equal(answer.headers.get('content-disposition'), 'attachment; filename="account-export.json"');
      t.match(answer.headers.get('content-type'), /^application\/json/);
      t.equal(answer.headers.get('cache-control'), 'no-store');
    }
    const browser = service.client();
    await browser.login(caller.account.email, caller.account.password, 'cookie');
    for (const path of PATHS) t.equal((await browser.request('GET', path, { headers: { cookie: browser.cookieHeader() } })).status, 200);
  });

  t.test('is refused without a credential and in unknown formats', async (t) => {
    const caller = await signIn(service);
    for (const path of PATHS) t.match(await service.client().request('GET', path), { status: 401, body: { code: 'UNAUTHENTICATED' } });
    for (const query of ['?format=xml', '?format=', '?format=JSON', '?format=csv&format=json']) t.match(await caller.export(query), { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
    t.match(await caller.export('?format=json'), { status: 200 });
  });
});

t.test('the export is limited per account, over both prefixes together', async (t) => {
  const service = await startApp(t, { LIMIT_EXPORT: '3/3600' });
  const [caller, other] = [await signIn(service), await signIn(service)];
  const answers = await Promise.all([0, 1, 0, 1, 0].map((path) => caller.export('', PATHS[path])));
  t.same(answers.map((answer) => answer.status).sort(), [200, 200, 200, 429, 429]);
  t.equal((await other.export()).status, 200);
});

t.test('an export of 100,000 audit entries neither blocks the event loop nor fills memory', async (t) => {
  const service = await startApp(t);
  const caller = await signIn(service);
  const digits = '(SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)';
  for (let part = 0; part < 10; part += 1) {
    await service.app.needs.mysql.run(
      `INSERT INTO audit_log (user_id, subject, action, status, ip_address) SELECT ?, ?, 'login', 'success', '2001:db8:85a3:8d3:1319:8a2e:370:7348'
       FROM ${digits} a, ${digits} b, ${digits} c, ${digits} d`,
      [caller.account.id, 'x'.repeat(43)],
    );
  }
  /** One export under watch: the 99th percentile of the loop delay in ms, and the growth of memory in MiB. */
  async function watched(format: string, mark: string): Promise<{ delay: number; growth: number }> {
    const idle = process.memoryUsage.rss();
    let peak = idle;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20);
    const loop = monitorEventLoopDelay({ resolution: 1 });
    loop.enable();
    const counted = await read(`${service.base}${PATHS[0]!}?format=${format}`, caller.token, mark);
    loop.disable();
    clearInterval(watch);
    t.equal(counted, 100_001, `${counted} entries came as ${format}`);
    return { delay: loop.percentile(99) / 1e6, growth: (peak - idle) / 1024 / 1024 };
  }
  for (const [format, mark] of [['json', '"login"'], ['csv', 'login,']] as const) {
    // Other programs on the machine take the processor away: what the export does itself shows each time.
    let [delay, growth] = [Infinity, 0];
    for (let tries = 0; tries < 4 && (tries === 0 || delay >= 20); tries += 1) {
      const seen = await watched(format, mark);
      delay = Math.min(delay, seen.delay);
      growth = Math.max(growth, seen.growth);
    }
    figure(t, 'T66', { did: `100,000 audit entries exported as ${format}`, figure: `p99 of the loop delay ${delay.toFixed(1)} ms, memory +${growth.toFixed(1)} MiB`, ok: delay < 20 && growth < 64 });
  }
});

t.test('an export whose database fails on the way ends as a broken connection, never as a whole document', async (t) => {
  const service = await startApp(t);
  const caller = await signIn(service);
  await service.app.needs.mysql.run('DROP TABLE mfa_factors');
  await t.rejects(caller.export());
});

/** Reads a reply as it comes and counts how often `mark` stands in it. */
function read(url: string, token: string, mark: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { authorization: `Bearer ${token}` } }, (response) => {
      let [count, rest] = [0, ''];
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        const parts = (rest + chunk).split(mark);
        count += parts.length - 1;
        rest = parts.at(-1)!.slice(-mark.length + 1);
      });
      response.on('end', () => resolve(count));
      response.on('error', reject);
    }).on('error', reject);
  });
}
