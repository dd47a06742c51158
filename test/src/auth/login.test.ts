import { hashSync as bcrypt } from '@node-rs/bcrypt';
import t from 'tap';
import { codeOf, lockOut, strangers, WRONG } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { figure, scaled } from '../../support/figures.js';
import { atMost } from '../../support/patience.js';

const { app, client, account } = await startApp(t, { LOGIN_DELAYS_S: '0' });
const { mysql } = app.needs;
const stranger = strangers(client);

t.test('json mode gives tokens in the body and sets no cookie; it is the default', async (t) => {
  const { email, password } = await account();
  for (const headers of [{ 'x-token-delivery': 'json' }, {}] as Record<string, string>[]) {
    const answer = await client().request('POST', '/api/auth/login', { body: { email, password }, headers });
    t.equal(answer.status, 200);
    t.same(Object.keys(answer.body), ['accessToken', 'refreshToken', 'jti', 'tokenType', 'expiresIn', 'refreshExpiresIn']);
    t.match(answer.body, { tokenType: 'Bearer', expiresIn: 900, refreshExpiresIn: 1_209_600, accessToken: /^[\w-]+\.[\w-]+\.[\w-]+$/, refreshToken: /^[\w-]{91}$/, jti: /^[\w-]{22}$/ });
    t.same(answer.setCookies, []);
    t.equal(answer.headers.get('x-xsrf-token'), null);
  }
});

t.test('cookie mode gives exactly the four cookies, to the letter, and a body that says only ok', async (t) => {
  const { email, password } = await account();
  const answer = await client().login(email, password, 'cookie');
  t.equal(answer.status, 200);
  t.equal(answer.text, '{"ok":true}');
  t.equal(answer.setCookies.length, 4);
  const [access, refresh, jti, xsrf] = answer.setCookies;
  t.match(access, /^idp_at=[\w-]+\.[\w-]+\.[\w-]+; Max-Age=900; Path=\/api; HttpOnly; Secure; SameSite=Strict$/);
  t.match(refresh, /^idp_rt=[\w-]{91}; Max-Age=1209600; Path=\/api\/auth; HttpOnly; Secure; SameSite=Strict$/);
  t.match(jti, /^idp_jti=[\w-]{22}; Max-Age=1209600; Path=\/api\/auth; HttpOnly; Secure; SameSite=Strict$/);
  t.match(xsrf, /^XSRF-TOKEN=[\w-]{64}; Max-Age=1209600; Path=\/; Secure; SameSite=Strict$/);
  t.equal(answer.headers.get('x-xsrf-token'), /^XSRF-TOKEN=([\w-]+)/.exec(xsrf!)![1]);
});

t.test('an unknown delivery is malformed', async (t) => {
  const { email, password } = await account();
  for (const delivery of ['Cookie', 'body', 'json, cookie', '']) {
    t.match(await client().login(email, password, delivery as 'json'), { status: 400, body: { code: 'INVALID_REQUEST', errors: [{ path: '/headers/x-token-delivery' }] } });
  }
});

t.test('every session is new: nothing that the client sent is carried over', async (t) => {
  const { email, password } = await account();
  const attacker = client();
  await attacker.login(email, password, 'cookie');
  const planted = new Map(attacker.jar);
  const victim = client();
  const { setCookies } = await victim.login(email, password, 'cookie', { 'cookie': attacker.cookieHeader(), 'x-xsrf-token': planted.get('XSRF-TOKEN')! });
  t.equal(setCookies.length, 4);
  for (const [name, value] of victim.jar) t.not(value, planted.get(name), name);
  const fresh = [...victim.jar].filter(([name, value]) => value !== planted.get(name)).length;
  figure(t, 'T22', { did: 'a login that brings the four cookies of another session', figure: `${fresh} of ${setCookies.length} values are new`, ok: fresh === 4 && setCookies.length === 4 });
  t.not((await victim.profile()).body['sessionId'], (await attacker.profile()).body['sessionId']);
});

/** Addresses that no password opens, each used once so that none is locked. */
const kindsOf = async (round: number): Promise<Record<string, string>> => ({
  known: (await account()).email,
  deleted: (await account({ deletedAt: new Date() })).email,
  disabled: (await account({ status: 'disabled' })).email,
  withoutPassword: (await account({ passwordHash: null })).email,
  unknown: `nobody-has-this-${round}@example.com`,
  odd: `x' OR 1=${round} -- `,
});

t.test('the refusal of a wrong password has the same bytes and headers whatever account there is', async (t) => {
  const seen = new Map<string, string[]>();
  const rounds = scaled(1, 100);
  for (let round = 0; round < rounds * 2; round += 1) {
    const [mode, kinds] = [round % 2 === 0 ? 'json' : 'cookie', await kindsOf(round)] as const;
    const shapes = await Promise.all(Object.entries(kinds).map(async ([kind, email]) => [kind, shapeOf(await stranger().login(email, WRONG, mode))] as const));
    for (const [kind, shape] of shapes) seen.set(shape, [...(seen.get(shape) ?? []), kind]);
  }
  t.equal(seen.size, 1, JSON.stringify([...seen]));
  t.match([...seen.keys()][0]!, /"status":401.*"code":"INVALID_CREDENTIALS"/);
  figure(t, 'T06', { did: `6 classes of address with a wrong password, ${rounds * 2} of each, both deliveries`, figure: `${seen.size - 1} answers that differ in a byte`, ok: seen.size === 1 });
});

/** All that a client sees of an answer, but for what is different each time. */
function shapeOf({ status, headers, text }: Answer): string {
  const shown = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date').map(([name, value]) => `${name}: ${value}`);
  return [status, ...shown, text.replace(/"requestId":"[^"]+"/, '')].join('\n');
}

t.test('a locked address answers alike whether or not it is known', async (t) => {
  const pairs = scaled(4, 200);
  const seen = new Map<string, string[]>();
  const lockAndAsk = async (i: number): Promise<void> => {
    for (const [kind, email] of Object.entries({ known: (await account()).email, unknown: `nobody-at-all-${i}@example.com` })) {
      await lockOut(stranger(), email);
      const answer = await stranger().login(email, WRONG);
      t.equal(Number(answer.headers.get('retry-after')), answer.body['retryAfter']);
      // What is left of a lock is a time, and a round second more or less for either.
      const shape = shapeOf(answer).replace(/(retry-?after"?: ?)[1-9](?!\d)/gi, '$1N');
      seen.set(shape, [...(seen.get(shape) ?? []), kind]);
    }
  };
  for (let i = 0; i < pairs; i += 4) await Promise.all(Array.from({ length: Math.min(4, pairs - i) }, (_, lane) => lockAndAsk(i + lane)));
  t.match([...seen.keys()][0], /ACCOUNT_LOCKED/);
  figure(t, 'T06', { did: `${pairs} known and ${pairs} unknown addresses, all locked`, figure: `${seen.size - 1} answers that differ in a byte`, ok: seen.size === 1 });
});

t.test('the right password of a deleted account says until when it can be restored, of a disabled one that it is inactive', async (t) => {
  const deletedAt = new Date('2026-01-02T03:04:05.678Z');
  const gone = await account({ deletedAt });
  t.match(await client().login(gone.email, gone.password), { status: 403, body: { code: 'ACCOUNT_DELETED', permanentDeletionAt: '2026-02-01T03:04:05.678Z' } });
  const off = await account({ status: 'disabled' });
  t.match(await client().login(off.email, off.password), { status: 403, body: { code: 'ACCOUNT_INACTIVE' } });
  const [row] = await mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM sessions WHERE user_id IN (?, ?)', [gone.id, off.id]);
  t.equal(Number(row!.n), 0);
});

t.test('an address counts in any case of ASCII letters and in no other spelling', async (t) => {
  const { password } = await account({ email: 'kim.o-neil@example.com' });
  for (const email of ['kim.o-neil@example.com', 'KIM.O-Neil@EXAMPLE.com']) t.equal(codeOf(await stranger().login(email, password)), 'OK', email);
  const others = ['\u212Aim.o-neil@example.com', 'k\u0131m.o-neil@example.com', ' kim.o-neil@example.com', 'kim.o-neil@example.com ', 'kim.o-neil@example.com\u0000', 'kím.o-neil@example.com', 'kim.o-neil\uFF20example.com', 'kim.o-neil@example.com.'];
  let matched = 0;
  for (const email of others) {
    const code = codeOf(await stranger().login(email, password));
    t.equal(code, 'INVALID_CREDENTIALS', JSON.stringify(email));
    if (code !== 'INVALID_CREDENTIALS') matched += 1;
  }
  figure(t, 'T44', { did: `${others.length} look-alikes of an address with its password`, figure: `${matched} matched`, ok: matched === 0 });
});

t.test('a password counts to its last byte, as it was sent', async (t) => {
  const long = 'x'.repeat(72);
  const pairs = [
    [`${long}a`, `${long}b`],
    ['abc\u0000def', 'abc\u0000xyz'],
    ['abc\u0000def', 'abc'],
    ['caf\u00E9 au lait', 'cafe\u0301 au lait'],
    ['pass word ', 'pass word'],
    ['\u{1F511}\u{1F511}', '\u{1F511}\u{1F512}'],
    ['y'.repeat(5000), 'y'.repeat(4999)],
  ] as const;
  let accepted = 0;
  for (const [mine, other] of pairs) {
    const { email } = await account({ password: mine });
    t.equal(codeOf(await client().login(email, mine)), 'OK');
    const code = codeOf(await client().login(email, other));
    t.equal(code, 'INVALID_CREDENTIALS', JSON.stringify(other.slice(-12)));
    if (code === 'OK') accepted += 1;
  }
  figure(t, 'T13', { did: `${pairs.length} pairs: alike for 72 bytes, up to a NUL, in another normal form, to the last of 5,000 bytes`, figure: `${accepted} accepted for each other`, ok: accepted === 0 });
});

t.test('bcrypt hashes prove no more of a password than they hold, and are replaced at the first login', async (t) => {
  const stored = async (password: string): Promise<string> => (await account({ passwordHash: bcrypt(password, { cost: 4 }) })).email;
  const email = await stored('right horse');
  t.equal(codeOf(await client().login(email, 'right horse')), 'OK');
  const [row] = await mysql.rows<{ hash: string }>('SELECT password_hash AS hash FROM users WHERE email = ?', [email]);
  t.match(row!.hash, /^\$argon2id\$v=19\$m=256,t=1,p=1\$/);
  t.equal(codeOf(await client().login(email, 'right horse')), 'OK', 'the new hash is of the same password');
  const long = await stored('x'.repeat(72));
  t.equal(codeOf(await client().login(long, `${'x'.repeat(72)}anything`)), 'INVALID_CREDENTIALS');
  t.equal(codeOf(await client().login(long, 'x'.repeat(72))), 'OK');
});

t.test('a hash that is unusable or too dear is never right and harms nobody', async (t) => {
  const salt = 'c2FsdHNhbHRzYWx0c2FsdA';
  const tag = 'A'.repeat(43);
  const poisoned = ['', 'plain text', `$argon2id$v=19$m=8388608,t=1000,p=1$${salt}$${tag}`, `$argon2id$v=19$m=8,t=1,p=16$${salt}$${tag}`, `$argon2id$v=19$m=256,t=1,p=1$${salt.slice(0, 11)}$${tag}`, `$2b$31$${'a'.repeat(53)}`, `$argon2id$v=16$m=256,t=1,p=1$${salt}$${tag}`];
  const good = await account();
  let slowest = 0;
  for (const passwordHash of poisoned) {
    const { email } = await account({ passwordHash });
    const started = performance.now();
    const [bad, fine] = await Promise.all([stranger().login(email, ''.padEnd(8, 'x')), client().login(good.email, good.password)]);
    t.equal(codeOf(bad), 'INVALID_CREDENTIALS', passwordHash.slice(0, 40));
    t.equal(codeOf(fine), 'OK');
    slowest = Math.max(slowest, performance.now() - started);
    t.ok(slowest < atMost(1000));
  }
  const { alive } = app.needs.hashing.state();
  t.equal(alive, 2, 'no thread was lost');
  figure(t, 'T52', { did: `${poisoned.length} poisoned hashes (8 GiB, 1,000 passes), a good login beside each`, figure: `slowest pair ${slowest.toFixed(0)} ms, ${alive} of 2 threads alive`, ok: slowest < atMost(1000) && alive === 2 });
});

t.test('what is not an address and a password is malformed', async (t) => {
  const bodies = [{}, { email: 'a@b.c' }, { password: 'x' }, { email: 1, password: 'x' }, { email: 'a@b.c', password: ['x'] }, { email: '', password: 'x' }, { email: 'a@b.c', password: '' }, { email: 'a'.repeat(255), password: 'x' }, { email: 'a@b.c', password: 'x', deviceName: 7 }, null, [], 'text'];
  for (const body of bodies) t.match(await client().request('POST', '/api/auth/login', { body }), { status: 400, body: { code: 'INVALID_REQUEST' } }, JSON.stringify(body));
  const { email, password } = await account();
  t.equal((await client().request('POST', '/api/auth/login', { body: { email, password, more: { x: 1 } } })).status, 200, 'members that nobody knows are ignored');
});

t.test('the session remembers its device and where it came from; what is new is a risk on record', async (t) => {
  const { id, email, password } = await account();
  await client({ ip: '203.0.113.5', userAgent: 'Browser/1' }).login(email, password);
  const answer = await client({ ip: '203.0.113.77', userAgent: 'Phone/2' }).request('POST', '/api/auth/login', { body: { email, password, deviceName: 'Ann’s phone' } });
  t.equal(answer.status, 200);
  const sessions = await mysql.rows<{ device: string; ip: string }>('SELECT device, ip_address AS ip FROM sessions WHERE user_id = ? ORDER BY created_at, id', [id]);
  t.same(sessions.map(({ device, ip }) => [device, ip]), [['Browser/1', '203.0.113.5'], ['Ann’s phone', '203.0.113.77']]);
  const audit = await mysql.rows<{ detail: string | null; status: string }>("SELECT detail, status FROM audit_log WHERE user_id = ? AND action = 'login' ORDER BY id", [id]);
  t.same(audit.map(({ status, detail }) => [status, detail]), [['success', null], ['success', '{"risks":["new_network","new_device"]}']]);
});

t.test('a password that changes while it is checked is checked again, and what the old one opened does not stay', async (t) => {
  const { id, email, password } = await account();
  const newHash = await app.needs.hashing.hash('another password', { network: 'tests' });
  // The reset holds the row while the login verifies the old password.
  let login: Promise<Answer>;
  await mysql.transaction(async (tx) => {
    await tx.run('UPDATE users SET password_hash = ? WHERE id = ?', [newHash, id]);
    login = client().login(email, password);
    await new Promise((resolve) => setTimeout(resolve, 100));
  });
  t.equal(codeOf(await login!), 'INVALID_CREDENTIALS');
  const [row] = await mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM sessions WHERE user_id = ?', [id]);
  t.equal(Number(row!.n), 0);
  t.equal(codeOf(await client().login(email, 'another password')), 'OK');
});

t.test('LIMIT_LOGIN_IP bounds logins per address', async (t) => {
  const limited = await startApp(t, { LIMIT_LOGIN_IP: '2/60' });
  const { email, password } = await limited.account();
  const from = limited.client({ ip: '198.51.100.1' });
  t.same([codeOf(await from.login(email, password)), codeOf(await from.login(email, password)), codeOf(await from.login(email, password))], ['OK', 'OK', 'RATE_LIMITED']);
  t.equal(codeOf(await limited.client({ ip: '198.51.100.2' }).login(email, password)), 'OK');
});

t.test('logins beyond what the threads can take are refused at once, and told when to come again', async (t) => {
  const small = await startApp(t, { HASH_THREADS: '1', HASH_QUEUE_MS: '20', ARGON2_MEMORY_KIB: '8192' });
  const from = strangers(small.client);
  const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => from().login(`nobody${i}@example.com`, WRONG)));
  const refused = answers.filter(({ status }) => status === 503);
  t.ok(refused.length > 0 && refused.length < 60, `${refused.length} of 60 refused`);
  for (const { body, headers } of refused) {
    t.equal(body['code'], 'OVERLOADED');
    t.equal(headers.get('retry-after'), String(body['retryAfter']));
  }
  t.same([...new Set(answers.map(codeOf))].sort(), ['INVALID_CREDENTIALS', 'OVERLOADED']);
});

t.test('while the threads are full nothing is read of a login, not even whether its body is one', async (t) => {
  const small = await startApp(t, { HASH_THREADS: '1', HASH_QUEUE_MS: '1', ARGON2_MEMORY_KIB: '131072', ARGON2_PASSES: '4' });
  const from = small.client({ ip: '198.51.100.9' });
  const busy = small.app.needs.hashing.hash('takes a while', { network: '198.51.100.9' });
  t.equal(codeOf(await from.request('POST', '/api/auth/login', { body: {} })), 'OVERLOADED');
  await busy;
  t.equal(codeOf(await from.request('POST', '/api/auth/login', { body: {} })), 'INVALID_REQUEST');
});
