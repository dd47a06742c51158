import t from 'tap';
import { codeOf, lockOut, strangers } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import { cli } from '../../support/cli.js';

// A lock of minutes: none ends by itself while this file runs.
const { app, env, client, account } = await startApp(t, { LOCKOUT_MINUTES: '15' });
const { mysql } = app.needs;
const run = cli(env);
const stranger = strangers(client);
const auditOf = async (id: string): Promise<string[]> => (await mysql.rows<{ action: string }>("SELECT action FROM audit_log WHERE user_id = ? AND action LIKE 'account.%' ORDER BY id", [id])).map(({ action }) => action);

t.test('user create makes an account that logs in, once', async (t) => {
  const password = 'pässword with blanks  ';
  const create = (...more: string[]) => cli(env, `${password}\r\n`)('user', 'create', '--email', 'Ann@Example.com', '--password-stdin', ...more);
  const first = await create('--verified', '--phone', '+491701234567', '--phone-verified');
  t.match(first, { code: 0, err: '' });
  const [, email, id] = /^created (\S+) \((\S+)\)\n$/.exec(first.out)!;
  t.equal(email, 'ann@example.com');
  const { accessToken } = (await client().login('ann@example.com', password)).body as { accessToken: string };
  t.match((await client().profile(accessToken)).body, { id, email, emailVerified: true, phone: '+491701234567', phoneVerified: true, status: 'active' });
  t.equal((await client().login('ann@example.com', password.trimEnd())).status, 401, 'the blanks belong to the password');
  t.match(await create(), { code: 1, out: '', err: 'an account with the address ann@example.com exists already\n' });
});

t.test('user create gives one JSON object on request, and an unverified account by default', async (t) => {
  const { code, out } = await cli(env, 'a password')('user', 'create', '--email', 'bob@example.com', '--password-stdin', '--json');
  t.equal(code, 0);
  const { id } = JSON.parse(out) as { id: string };
  t.strictSame(JSON.parse(out), { id, email: 'bob@example.com' });
  const { accessToken } = (await client().login('bob@example.com', 'a password')).body as { accessToken: string };
  t.match((await client().profile(accessToken)).body, { id, emailVerified: false, phone: null, phoneVerified: false });
});

t.test('a password that is too short, too long or no text makes no account', async (t) => {
  const create = (input: string | Buffer) => cli(env, input)('user', 'create', '--email', 'cem@example.com', '--password-stdin');
  for (const input of ['', '\n', 'seven77\n', 'x'.repeat(257)]) t.match(await create(input), { code: 1, out: '', err: 'a password has 8 to 256 characters\n' });
  t.match(await create(Buffer.from('p\xe4ssword', 'latin1')), { code: 1, out: '', err: 'the password is not valid UTF-8\n' });
  t.equal((await mysql.rows("SELECT id FROM users WHERE email = 'cem@example.com'")).length, 0);
  const longest = '\u{1F511}'.repeat(256);
  t.match(await create(longest), { code: 0 });
  t.equal((await client().login('cem@example.com', longest)).status, 200, '256 characters of four bytes each');
});

t.test('a disabled account is refused everywhere until it is enabled, and then has its session still', async (t) => {
  const { id, email, password } = await account();
  const { accessToken, refreshToken } = (await client().login(email, password)).body as Record<string, string>;
  t.match(await run('user', 'disable', '--email', email.toUpperCase()), { code: 0, out: `disabled ${email}\n`, err: '' });
  t.match(await client().login(email, password), { status: 403, body: { code: 'ACCOUNT_INACTIVE' } });
  t.match(await client().login(email, 'wrong'), { status: 401, body: { code: 'INVALID_CREDENTIALS' } });
  t.match(await client().refresh(refreshToken), { status: 401, body: { code: 'REFRESH_USER_INACTIVE' } });
  t.match(await client().profile(accessToken), { status: 401, body: { code: 'UNAUTHENTICATED' } });

  const enabled = await run('--json', 'user', 'enable', '--email', email);
  t.strictSame(JSON.parse(enabled.out), { id, email });
  t.equal((await client().profile(accessToken)).status, 200);
  t.equal((await client().refresh(refreshToken)).status, 200);
  t.equal((await client().login(email, password)).status, 200);
  t.same(await auditOf(id), ['account.disabled', 'account.enabled']);
});

t.test('unlock ends the lock of an account that strangers brought about, and forgets its failures', async (t) => {
  const { id, email, password } = await account();
  const from = stranger();
  await lockOut(from, email);
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
  t.match(await run('user', 'unlock', '--email', email), { code: 0, out: `unlocked ${email}\n`, err: '' });
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await from.login(email, 'wrong')), 'INVALID_CREDENTIALS', 'the count begins anew');
  t.equal(codeOf(await from.login(email, password)), 'OK');
  t.same(await auditOf(id), ['account.unlocked']);
});

t.test("unlock ends the lock of the owner's own devices too", async (t) => {
  const { email, password } = await account();
  const home = stranger();
  const work = stranger();
  for (const device of [home, work]) t.equal(codeOf(await device.login(email, password)), 'OK');
  for (const device of [home, work]) await lockOut(device, email);
  for (const device of [home, work, stranger()]) t.equal(codeOf(await device.login(email, password)), 'ACCOUNT_LOCKED');
  t.match(await run('user', 'unlock', '--email', email), { code: 0 });
  for (const device of [home, work, stranger()]) t.equal(codeOf(await device.login(email, password)), 'OK');
});

t.test('unlock changes nothing while Redis is away', async (t) => {
  const { id, email } = await account();
  await lockOut(stranger(), email);
  t.match(await cli({ ...env, REDIS_URL: 'redis://127.0.0.1:1' })('user', 'unlock', '--email', email), { code: 1, err: /^Redis cannot be used/ });
  t.match(await mysql.rows('SELECT locked_until IS NOT NULL AS locked FROM users WHERE id = ?', [id]), [{ locked: 1 }]);
  t.same(await auditOf(id), []);
});

t.test('an address without an account is said so', async (t) => {
  for (const command of ['disable', 'enable', 'unlock']) t.match(await run('user', command, '--email', 'nobody@example.com'), { code: 1, out: '', err: 'no account has the address nobody@example.com\n' });
});
