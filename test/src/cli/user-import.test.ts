import { hashSync as bcrypt } from '@node-rs/bcrypt';
import argon2 from 'argon2';
import { randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { cli, cliOnTerminal, fileOf } from '../../support/cli.js';
import { atMost } from '../../support/patience.js';

const { app, env, client } = await startApp(t);
const { mysql } = app.needs;
const run = cli(env);
const jsonl = (...lines: (object | string)[]): string => lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
const countOf = async (like: string): Promise<number> => (await mysql.rows<{ n: number }>('SELECT COUNT(*) AS n FROM users WHERE email LIKE ?', [like]))[0]!.n;
const base64 = (bytes: number): string => randomBytes(bytes).toString('base64').replace(/=+$/, '');
/** A hash that nobody needs to verify. */
const HASH = `$2b$10$${'e'.repeat(53)}`;

t.test('every kind of password hash logs in afterwards, and is renewed at the current cost', async (t) => {
  const cost = { memoryCost: 512, timeCost: 2, parallelism: 1 };
  const hashes: Record<string, string> = {
    argon2id: await argon2.hash('a password', cost),
    argon2i: await argon2.hash('a password', { ...cost, type: argon2.argon2i }),
    argon2d: await argon2.hash('a password', { ...cost, type: argon2.argon2d }),
    lanes: await argon2.hash('a password', { ...cost, parallelism: 4 }),
    bcrypt2b: bcrypt('a password', { cost: 4 }),
    bcrypt2a: bcrypt('a password', { cost: 4, version: '2a' }),
    bcrypt2y: bcrypt('a password', { cost: 4, version: '2y' }),
  };
  const lines = [...Object.entries(hashes).map(([kind, passwordHash]) => ({ email: `${kind}@hash.example`, passwordHash })), { email: 'plain@hash.example', password: 'a password' }, { email: 'none@hash.example' }];
  t.match(await run('user', 'import', fileOf(t, jsonl(...lines))), { code: 0, out: `created ${lines.length} of ${lines.length} accounts\n`, err: '' });
  for (const kind of [...Object.keys(hashes), 'plain']) {
    t.equal((await client().login(`${kind}@hash.example`, 'a password')).status, 200, kind);
    t.equal((await client().login(`${kind}@hash.example`, 'another one')).status, 401);
  }
  t.equal((await client().login('none@hash.example', '')).status, 400);
  t.equal((await client().login('none@hash.example', 'a password')).status, 401, 'an account without a password has none');
  const renewed = await mysql.rows<{ email: string; hash: string }>("SELECT email, password_hash AS hash FROM users WHERE email LIKE 'bcrypt%@hash.example'");
  t.equal(renewed.length, 3);
  for (const { email, hash } of renewed) t.match(hash, /^\$argon2id\$v=19\$m=256,t=1,p=1\$/, email);
});

t.test('a whole account is what the line says; roles and tenants are created once', async (t) => {
  const line = {
    email: 'Ann@Whole.example',
    passwordHash: await argon2.hash('a password', { memoryCost: 256, timeCost: 2, parallelism: 1 }),
    emailVerified: true,
    phone: '+491701234567',
    phoneVerified: true,
    status: 'active',
    roles: ['editor', 'chef de cuisine', 'editor'],
    tenants: ['acme', 'Acme'],
    profiles: [{ provider: 'google', givenName: 'Änn\u2028', familyName: null }, { provider: 'local' }],
  };
  const disabled = { email: 'off@whole.example', password: 'a password', status: 'disabled', roles: ['editor'], tenants: ['acme'], phone: null, profiles: [] };
  // The separator stands in the file as it is: JSON allows that, and a line does not end there.
  const file = fileOf(t, jsonl(JSON.stringify(line), disabled));
  t.match(await run('user', 'import', file), { code: 0, err: '' });
  const { accessToken } = (await client().login('ann@whole.example', 'a password')).body as { accessToken: string };
  const { body } = await client().profile(accessToken);
  t.match(body, { email: 'ann@whole.example', emailVerified: true, phone: '+491701234567', phoneVerified: true, status: 'active' });
  t.same((body['roles'] as { name: string }[]).map(({ name }) => name).sort(), ['chef de cuisine', 'editor']);
  t.same((body['tenants'] as { slug: string; name: string }[]).map(({ slug, name }) => [slug, name]).sort(), [['Acme', 'Acme'], ['acme', 'acme']]);
  t.match((body['profiles'] as { provider: string }[]).sort((a, b) => (a.provider < b.provider ? -1 : 1)), [{ provider: 'google', givenName: 'Änn\u2028', familyName: null }, { provider: 'local', givenName: null }]);
  t.match(await client().login('off@whole.example', 'a password'), { status: 403, body: { code: 'ACCOUNT_INACTIVE' } });
  t.equal((await mysql.rows("SELECT id FROM roles WHERE name = 'editor'")).length, 1);
});

t.test('each bad line is reported with its number and its fault, and the rest goes on', async (t) => {
  const ok = (name: string): object => ({ email: `${name}@bad.example`, passwordHash: HASH });
  const at = (members: object): object => ({ email: 'x@bad.example', ...members });
  const argon2Tail = `$${base64(16)}$${base64(32)}`;
  const bad: [object | string, RegExp][] = [
    ['{"email":', /^not valid JSON$/],
    ['null', /must be object/],
    ['[]', /must be object/],
    [{}, /^\/email is required$/],
    [{ email: 5 }, /^\/email must be string$/],
    [at({ email: 'no address' }), /^\/email is not an e-mail address$/],
    [at({ emailVerfied: true }), /^\/emailVerfied is not a known member$/],
    ['{"email":"x@bad.example","__proto__":{}}', /^\/__proto__ is not a known member$/],
    [at({ profiles: [{ provider: 'a', giveName: 'Ann' }] }), /^\/profiles\/0\/giveName is not a known member$/],
    [at({ password: 'short' }), /^\/password: a password has 8 to 256/],
    [at({ password: 'long enough', passwordHash: HASH }), /exclude each other/],
    [at({ passwordHash: '5f4dcc3b5aa765d61d8327deb882cf99' }), /^\/passwordHash is neither/],
    [at({ passwordHash: `$argon2id$v=19$m=1048576,t=3,p=1${argon2Tail}` }), /costs too much to verify/],
    [at({ passwordHash: `$2b$15$${'e'.repeat(53)}` }), /costs too much to verify/],
    [at({ passwordHash: `$2b$10$${'e'.repeat(52)}f` }), /^\/passwordHash is neither/],
    [at({ passwordHash: `$argon2id$v=19$m=256,t=1,p=1$${base64(300)}$${base64(32)}` }), /^\/passwordHash must NOT have more than 255/],
    [at({ emailVerified: 'yes' }), /^\/emailVerified must be boolean$/],
    [at({ phone: 'call me' }), /^\/phone: a phone number has/],
    [at({ phoneVerified: true }), /^\/phoneVerified needs a \/phone$/],
    [at({ status: 'deleted' }), /^\/status must be one of active, disabled$/],
    [at({ roles: 'admin' }), /^\/roles must be array$/],
    [at({ roles: ['admin '] }), /^\/roles\/0: a role has/],
    [at({ roles: ['a', ''] }), /^\/roles\/1: a role has/],
    [at({ tenants: ['no blanks'] }), /^\/tenants\/0: a tenant has/],
    [at({ profiles: [{ givenName: 'Ann' }] }), /^\/profiles\/0\/provider is required$/],
    [at({ profiles: [{ provider: 'a', givenName: 'x'.repeat(256) }] }), /^\/profiles\/0\/givenName must NOT have more than 255/],
    ['{"email":"x\\ud800@bad.example"}', /half a character/],
    [ok('fine'), /^an account with this address exists already$/],
  ];
  const lines = [ok('fine'), '', '   ', ...bad.map(([line]) => line), ok('last')];
  const { code, out, err } = await run('user', 'import', fileOf(t, jsonl(...lines)), '--json');
  t.equal(code, 1);
  const result = JSON.parse(out) as { lines: number; created: number; problems: { line: number; problem: string }[] };
  t.match(result, { lines: bad.length + 2, created: 2 });
  t.same(result.problems.map(({ line }) => line), bad.map((_, i) => i + 4), 'blank lines count as lines of the file');
  bad.forEach(([line, problem], i) => t.match(result.problems[i]?.problem, problem, JSON.stringify(line).slice(0, 60)));
  t.same(err.split('\n'), [...result.problems.map(({ line, problem }) => `line ${line}: ${problem}`), `${bad.length} of ${bad.length + 2} lines were not imported`, '']);
  t.equal(await countOf('%@bad.example'), 2);
});

t.test('line ends, a BOM, a last line without an end, bytes that are no text and lines without end are taken for what they are', async (t) => {
  const line = (name: string): Buffer => Buffer.from(JSON.stringify({ email: `${name}@ends.example` }));
  const parts = ['\uFEFF', line('bom'), '\r\n', line('crlf'), '\r\n\r\n', '{"email":"', Buffer.from([0xff]), '@ends.example"}\n', '{"email":"', 'x'.repeat(2 * 1024 * 1024), '"}\n', '\uFEFF', line('bom-in-between'), '\n', line('last')];
  const { code, out } = await run('user', 'import', fileOf(t, Buffer.concat(parts.map((part) => Buffer.from(part)))), '--json');
  t.equal(code, 1);
  t.strictSame(JSON.parse(out), {
    lines: 6,
    created: 3,
    problems: [
      { line: 4, problem: 'not valid UTF-8' },
      { line: 5, problem: 'longer than 1 MiB' },
      { line: 6, problem: 'not valid JSON' },
    ],
  });
  t.same((await mysql.rows<{ email: string }>("SELECT email FROM users WHERE email LIKE '%@ends.example' ORDER BY email")).map(({ email }) => email), ['bom@ends.example', 'crlf@ends.example', 'last@ends.example']);
});

t.test('a file that cannot be read is named', async (t) => {
  t.match(await run('user', 'import', '/no/such/file'), { code: 1, out: '', err: /^\/no\/such\/file cannot be read: ENOENT/ });
  t.match(await run('user', 'import', '/tmp'), { code: 1, out: '', err: '/tmp cannot be read: it is a folder\n' });
  t.match(await run('user', 'import', fileOf(t, '')), { code: 0, out: 'created 0 of 0 accounts\n', err: '' });
});

t.test('an import runs again after it was killed, and two at once create each account once', { timeout: 90_000 }, async (t) => {
  const lines = Array.from({ length: 6000 }, (_, n) => ({ email: `n${n}@again.example`, passwordHash: HASH, roles: [`role ${n % 7}`] }));
  const forward = fileOf(t, jsonl(...lines));
  const main = new URL('../../../src/cli/main.js', import.meta.url).pathname;
  const first = spawn(process.execPath, [main, 'user', 'import', forward], { env: { PATH: process.env['PATH'], ...env }, stdio: 'ignore' });
  while ((await countOf('%@again.example')) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  first.kill('SIGKILL');
  const before = await countOf('%@again.example');
  t.ok(before < lines.length, `killed after ${before}`);

  const results = await Promise.all([run('user', 'import', forward, '--json'), run('user', 'import', fileOf(t, jsonl(...lines.toReversed())), '--json')]);
  const created = results.map(({ out }) => (JSON.parse(out) as { created: number }).created);
  t.ok(created[0]! + created[1]! >= lines.length - before - 500, created.join(' and '));
  t.equal(await countOf('%@again.example'), lines.length);
  t.equal((await mysql.rows("SELECT id FROM roles WHERE name LIKE 'role _'")).length, 7);
  t.equal((await mysql.rows<{ n: number }>("SELECT COUNT(*) AS n FROM user_roles ur JOIN users u ON u.id = ur.user_id WHERE u.email LIKE '%@again.example'"))[0]!.n, lines.length, 'none is half there');
});

t.test('accounts with as many roles, tenants and profiles as are allowed go in', async (t) => {
  const many = (prefix: string): string[] => Array.from({ length: 100 }, (_, n) => `${prefix}${n}`);
  const profiles = Array.from({ length: 20 }, (_, n) => ({ provider: `p${n}`, givenName: 'ä'.repeat(255), familyName: 'ß'.repeat(255) }));
  const lines = Array.from({ length: 400 }, (_, n) => ({ email: `n${n}@many.example`, roles: many('r'), tenants: many(`t${n % 3}-`), profiles: n % 4 === 0 ? profiles : [] }));
  t.match(await run('user', 'import', fileOf(t, jsonl(...lines))), { code: 0, out: 'created 400 of 400 accounts\n' });
  const [row] = await mysql.rows("SELECT (SELECT COUNT(*) FROM user_roles ur WHERE ur.user_id = u.id) AS roles, (SELECT COUNT(*) FROM user_tenants ut WHERE ut.user_id = u.id) AS tenants, (SELECT COUNT(*) FROM profiles p WHERE p.user_id = u.id) AS profiles FROM users u WHERE u.email = 'n396@many.example'");
  t.match(row, { roles: 100, tenants: 100, profiles: 20 });
});

t.test('10,000 lines with hashes take less than 6 s', async (t) => {
  const lines = Array.from({ length: 10_000 }, (_, n) => ({ email: `n${n}@speed.example`, passwordHash: `$argon2id$v=19$m=19456,t=2,p=1$${base64(16)}$${base64(32)}`, emailVerified: true, roles: ['member'], tenants: ['acme'], profiles: [{ provider: 'local', givenName: 'Ann', familyName: 'Lee' }] }));
  const file = fileOf(t, jsonl(...lines));
  const started = performance.now();
  const { code, err } = await run('user', 'import', file);
  const seconds = (performance.now() - started) / 1000;
  t.match({ code, err }, { code: 0, err: '' }, 'and no progress bar is drawn on what is no terminal');
  t.ok(seconds < atMost(6_000) / 1000, `${seconds.toFixed(1)} s`);
});

t.test('on a terminal a bar shows the progress; a failed import ends all the same, and Ctrl-C ends it', { timeout: 90_000 }, async (t) => {
  const lines = (domain: string, n: number): string => jsonl(...Array.from({ length: n }, (_, i) => ({ email: `n${i}@${domain}`, passwordHash: HASH })));
  const good = await cliOnTerminal(env, ['user', 'import', fileOf(t, lines('bar.example', 1000))]);
  t.equal(good.code, 0);
  t.match(good.out, /import =+ 100% 1000 created, 0 refused[^]*created 1000 of 1000 accounts/);
  const failed = await cliOnTerminal({ ...env, MYSQL_URL: 'mysql://127.0.0.1:1/none' }, ['user', 'import', fileOf(t, lines('bar.example', 1))]);
  t.equal(failed.code, 1);
  t.match(failed.out, /MySQL cannot be used: connect ECONNREFUSED/);
  const stopped = await cliOnTerminal(env, ['user', 'import', fileOf(t, lines('stopped.example', 60_000))], '\u0003');
  t.notOk(stopped.out.includes('accounts'), 'it did not reach its end');
  t.ok((await countOf('%@stopped.example')) < 60_000);
});
