// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { addTotp } from '../../support/accounts.js';
import { openInbox } from '../../support/inbox.js';
import { times } from '../../support/otp.js';
import { QUIET_MS, signUpAt } from '../../support/sign-up.js';

const inbox = openInbox(t);
const service = await startApp(t, inbox.settings);
const { mysql, keyring } = service.app.needs;
const { register, verify, token } = signUpAt(service, inbox);
const PASSWORD = 'a password of my own';

const templatesTo = (email: string): string[] => inbox.to(email).map(({ template }) => template);
const rows = (email: string) => mysql.rows<{ id: string; hash: string; verified: Date | null }>('SELECT id, password_hash AS hash, email_verified_at AS verified FROM users WHERE email = ?', [email]);
const login = (email: string, password: string) => service.client().login(email, password);

/** What a client sees of an answer, its request id aside. */
const seen = ({ status, headers, text }: { status: number; headers: Headers; text: string }) => ({ status, text, headers: [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)) });

t.test('a sign-up opens an account that can log in, with its names, an event, an audit entry and a mail', async (t) => {
  const answer = await register('Ann@Example.com', PASSWORD, { givenName: 'Ann', familyName: 'Ünal' });
  t.match(answer, { status: 202, text: '{"ok":true}' });
  const mail = await inbox.nth('ann@example.com', 'email_verification_requested');
  t.ok(mail.text.includes(mail.data['token']!));
  t.match(mail.data['token'], /^[\w-]{43}$/, '256 bits');
  const [user] = await rows('ann@example.com');
  t.match(user, { hash: /^\$argon2id\$/, verified: null });
  t.same(await mysql.rows('SELECT provider, given_name AS givenName, family_name AS familyName FROM profiles WHERE user_id = ?', [user!.id]), [{ provider: 'local', givenName: 'Ann', familyName: 'Ünal' }]);
  const events = await mysql.rows<{ type: string; message: string }>('SELECT type, message FROM event_outbox WHERE user_id = ?', [user!.id]);
  t.same(events.map(({ type }) => type), ['identity.user.registered']);
  t.match(JSON.parse(events[0]!.message), { userId: user!.id, email: 'ann@example.com' });
  t.match(await mysql.rows('SELECT action, status, ip_address AS ip FROM audit_log WHERE user_id = ?', [user!.id]), [{ action: 'account.registered', status: 'success', ip: '127.0.0.1' }]);
  t.match(await login('ANN@example.com', PASSWORD), { status: 200 }, 'before its address is proven, too');
});

t.test('a known address gets the same reply, byte for byte, and its owner a mail instead', async (t) => {
  const { email, password } = await service.account({ email: 'known@example.com' });
  const before = await rows(email);
  const [known, unknown] = [await register(email, PASSWORD), await register('unknown@example.com', PASSWORD)];
  t.same(seen(known), seen(unknown));
  t.equal(known.status, 202);
  await inbox.nth(email, 'account_exists');
  t.same(templatesTo(email), ['account_exists']);
  t.same(await rows(email), before, 'nothing of the account changed');
  t.match(await login(email, password), { status: 200 });
  t.match(await login(email, PASSWORD), { status: 401 });
});

t.test('an unverified address that signs up again gets its verification mail anew and keeps the first password', async (t) => {
  await register('twice@example.com', PASSWORD, { givenName: 'First' });
  const first = await token('twice@example.com', 'verify');
  t.equal((await register('twice@example.com', 'another password of mine', { givenName: 'Second' })).status, 202);
  const second = await token('twice@example.com', 'verify', 2);
  t.match((await verify(first)).body, { code: 'TOKEN_INVALID' }, 'the newest issue wins');
  t.equal((await verify(second)).status, 204);
  t.match(await login('twice@example.com', 'another password of mine'), { status: 401 });
  t.match(await login('twice@example.com', PASSWORD), { status: 200 });
  t.equal((await mysql.rows("SELECT id FROM profiles WHERE given_name = 'Second'")).length, 0);
});

t.test('no name reaches an address that is not proven', async (t) => {
  const spam = 'Win at http://evil.example';
  await register('stranger@example.com', PASSWORD, { givenName: spam });
  await register('stranger@example.com', PASSWORD);
  await inbox.nth('stranger@example.com', 'email_verification_requested', 2);
  for (const mail of inbox.to('stranger@example.com')) t.notOk(JSON.stringify(mail).includes('evil'));
});

t.test('the owner of a deleted account hears that it can be restored; a disabled or lapsed one hears nothing', async (t) => {
  await service.account({ email: 'deleted@example.com', deletedAt: new Date() });
  await service.account({ email: 'disabled@example.com', status: 'disabled' });
  await service.account({ email: 'lapsed@example.com', deletedAt: new Date(Date.now() - 31 * 86_400_000) });
  for (const email of ['deleted@example.com', 'disabled@example.com', 'lapsed@example.com']) t.match(await register(email, PASSWORD), { status: 202, text: '{"ok":true}' });
  await inbox.nth('deleted@example.com', 'account_restorable');
  await sleep(QUIET_MS);
  t.same(['deleted@example.com', 'disabled@example.com', 'lapsed@example.com'].map(templatesTo), [['account_restorable'], [], []]);
  t.match(await login('deleted@example.com', PASSWORD), { status: 401 });
});

t.test('a second factor of a known account is as it was', async (t) => {
  const { id, email, password } = await service.account();
  await addTotp({ mysql, keyring }, id);
  await register(email, PASSWORD);
  await inbox.nth(email, 'account_exists');
  t.match((await login(email, password)).body, { mfaRequired: true });
});

t.test('a password has 8 to 256 characters of any kind, counted and kept as sent', async (t) => {
  const emoji = '\u{1F511}';
  const good = ['        ', emoji.repeat(8), emoji.repeat(256), 'x'.repeat(255) + emoji, 'pass\u0000word', ' a space at both ends ', 'e\u0301'.repeat(4)];
  await times(good.length, async (i) => {
    const email = `good${i}@example.com`;
    t.equal((await register(email, good[i])).status, 202, `${i}`);
    await token(email, 'verify');
    t.equal((await login(email, good[i]!)).status, 200, `${i}`);
  });
  const others = ['       ', emoji.repeat(9), emoji.repeat(255), 'x'.repeat(255), 'pass\u0000worse', 'a space at both ends', '\u00e9'.repeat(4)];
  for (const [i, password] of others.entries()) t.equal((await login(`good${i}@example.com`, password)).status, 401, `what is almost password ${i} is another`);
  for (const password of ['x'.repeat(257), emoji.repeat(257), 'seven c', emoji.repeat(7), '', 12345678, null, ['a password in a list']]) {
    t.match((await register('bad@example.com', password)).body, { code: 'INVALID_REQUEST', errors: [{ path: '/password' }] });
  }
  await sleep(QUIET_MS);
  t.same(await rows('bad@example.com'), []);
});

t.test('the commonest passwords and one’s own address are refused, in whatever case', async (t) => {
  for (const password of ['password', 'PassWord', 'qwertyuiop', '1234567890', 'trustno1', 'somebody@example.com', 'SomeBody']) {
    t.match(await register('somebody@example.com', password), { status: 400, body: { code: 'PASSWORD_TOO_WEAK', errors: [{ path: '/password', message: String }] } }, password);
  }
});

t.test('what is no e-mail address is refused, and what is missing or of a wrong type', async (t) => {
  for (const email of ['no address', 'a@b@c', ' a@example.com', 'a@example.com ', 'a@example.com\r\nBcc: b@example.com', 'a,b@example.com', 'jose\u0301@example.com', '@', 'a@', '@b']) {
    t.match(await register(email, PASSWORD), { status: 400, body: { code: 'INVALID_REQUEST', errors: [{ path: '/email' }] } }, JSON.stringify(email));
  }
  for (const email of ['', 'a'.repeat(251) + '@b.c', 17, null, undefined, {}]) t.match(await register(email, PASSWORD), { status: 400, body: { code: 'INVALID_REQUEST' } });
  for (const givenName of [17, 'x'.repeat(256), ['Ann']]) t.match((await register('a@example.com', PASSWORD, { givenName })).body, { code: 'INVALID_REQUEST', errors: [{ path: '/givenName' }] });
});

t.test('look-alikes of an address are other addresses', async (t) => {
  await service.account({ email: 'kate@example.com' });
  await register('\uff4bate@example.com', PASSWORD);
  await inbox.nth('\uff4bate@example.com', 'email_verification_requested');
  t.same(templatesTo('kate@example.com'), []);
});

t.test('members that a client has no business with change nothing', async (t) => {
  await register('proud@example.com', PASSWORD, { emailVerified: true, status: 'disabled', roles: ['admin'], id: 'x', email_verified_at: '2020-01-01' });
  await token('proud@example.com', 'verify');
  t.match(await rows('proud@example.com'), [{ verified: null }]);
  t.match((await login('proud@example.com', PASSWORD)).status, 200);
});
