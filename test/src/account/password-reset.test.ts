// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { addTotp } from '../../support/accounts.js';
import { lockOut, WRONG } from '../../support/attempts.js';
import type { Issued } from '../../support/client.js';
import { openInbox } from '../../support/inbox.js';
import { everyKey } from '../../support/keyspace.js';
import { QUIET_MS, signUpAt } from '../../support/sign-up.js';

const inbox = openInbox(t);
// A lock outlasts every test here.
const service = await startApp(t, { ...inbox.settings, LOCKOUT_MINUTES: '10' });
const { mysql, keyring, redis } = service.app.needs;
const { forgot, reset, token, resetToken } = signUpAt(service, inbox);
const NEW = 'quite another password';
const REFUSED = { status: 400, body: { code: 'TOKEN_INVALID' } };

const login = (email: string, password: string, ip?: string) => service.client(ip === undefined ? {} : { ip }).login(email, password);

t.test('the token of the mail sets a new password and ends every session', async (t) => {
  const { id, email, password } = await service.account();
  const issued = [await login(email, password), await login(email, password)].map(({ body }) => body as unknown as Issued);
  const good = await resetToken(email);
  t.match(await reset(good, NEW), { status: 204, text: '' });
  t.match(await login(email, password), { status: 401 });
  for (const { accessToken, refreshToken } of issued) {
    t.equal((await service.client().profile(accessToken)).status, 401);
    t.match((await service.client().refresh(refreshToken)).body, { code: 'REFRESH_SESSION_REVOKED' });
  }
  t.equal((await login(email, NEW)).status, 200);
  t.match(await reset(good, 'a third password of mine'), REFUSED, 'used');
  t.equal((await login(email, NEW)).status, 200);
  const [event] = await mysql.rows<{ message: string }>("SELECT message FROM event_outbox WHERE user_id = ? AND type = 'identity.user.password_changed'", [id]);
  t.match(JSON.parse(event!.message), { userId: id, email, by: 'reset' });
  const audit = await mysql.rows<{ action: string }>("SELECT action FROM audit_log WHERE user_id = ? AND action LIKE 'password.%' ORDER BY id", [id]);
  t.same(audit.map(({ action }) => action), ['password.reset_requested', 'password.reset']);
  await inbox.nth(email, 'password_changed');
});

t.test('the new password is stored as it was sent', async (t) => {
  for (const [set, almost] of [['  \u{1F511}\u0000eight  ', '\u{1F511}\u0000eight'], [`${'x'.repeat(72)}one and the rest`, `${'x'.repeat(72)}two and the rest`]] as const) {
    const { email } = await service.account();
    await reset(await resetToken(email), set);
    t.equal((await login(email, almost)).status, 401);
    t.equal((await login(email, set)).status, 200);
  }
});

t.test('a token that was replaced, expired, made up or is foreign sets nothing', async (t) => {
  const { id, email, password } = await service.account();
  const first = await resetToken(email);
  const second = await resetToken(email);
  t.match(await reset(first, NEW), REFUSED, 'replaced');
  for (const wrong of [`${second}x`, second.slice(1), 'A'.repeat(43), id, email, '\u0000']) t.match(await reset(wrong, NEW), REFUSED);
  await mysql.run('UPDATE account_tokens SET expires_at = UTC_TIMESTAMP(3) WHERE user_id = ?', [id]);
  t.match(await reset(second, NEW), REFUSED, 'expired');
  await mysql.run("UPDATE account_tokens SET expires_at = UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE, purpose = 'verify_email' WHERE user_id = ?", [id]);
  t.match(await reset(second, NEW), REFUSED, 'of another purpose');
  t.equal((await login(email, password)).status, 200, 'nothing changed');

  const other = await service.account();
  const theirs = await resetToken(other.email);
  await mysql.run('UPDATE account_tokens SET user_id = ? WHERE user_id = ?', [`${id.slice(0, 35)}x`, other.id]);
  t.match(await reset(theirs, NEW), REFUSED, 'of an account that is gone');
});

t.test('a weak or malformed password does not use the token up', async (t) => {
  const { email } = await service.account();
  const good = await resetToken(email);
  for (const password of ['password1', '1q2w3e4r5t', email]) t.match(await reset(good, password), { status: 400, body: { code: 'PASSWORD_TOO_WEAK', errors: [{ path: '/password' }] } });
  for (const password of ['seven c', 'x'.repeat(257), 17, null]) t.match(await reset(good, password), { status: 400, body: { code: 'INVALID_REQUEST' } });
  t.equal((await reset(good, NEW)).status, 204);
});

t.test('it clears the lock of the account in Redis and MySQL, and those of familiar sources', async (t) => {
  const { id, email, password } = await service.account();
  t.equal((await login(email, password, '198.51.100.1')).status, 200);
  await lockOut(service.client({ ip: '198.51.100.1' }), email);
  await lockOut(service.client({ ip: '198.51.100.2' }), email);
  for (const ip of ['198.51.100.1', '198.51.100.2', '198.51.100.3']) t.match((await login(email, password, ip)).body, { code: 'ACCOUNT_LOCKED' }, ip);
  t.equal((await mysql.rows('SELECT user_id FROM login_sources WHERE user_id = ? AND locked_until IS NOT NULL', [id])).length, 1);

  await reset(await resetToken(email), NEW);
  t.same(await mysql.rows('SELECT locked_until, gate_locked_until FROM users WHERE id = ?', [id]), [{ locked_until: null, gate_locked_until: null }]);
  t.same(await mysql.rows('SELECT user_id FROM login_sources WHERE user_id = ? AND locked_until IS NOT NULL', [id]), []);
  t.same(await everyKey(redis, 'idp:*gate:*'), []);
  for (const ip of ['198.51.100.1', '198.51.100.3']) t.equal((await login(email, NEW, ip)).status, 200);
});

t.test('the second factor is asked for as before, and a login that began with the old password ends', async (t) => {
  const { id, email, password } = await service.account();
  const totp = await addTotp({ mysql, keyring }, id);
  const { mfaToken } = (await login(email, password)).body;
  t.equal((await reset(await resetToken(email), NEW)).status, 204);
  const verifyLogin = (token: unknown) => service.client().request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken: token, method: 'totp', code: totp() } });
  t.match((await verifyLogin(mfaToken)).body, { code: 'MFA_TOKEN_INVALID' });
  const challenge = (await login(email, NEW)).body;
  t.match(challenge, { mfaRequired: true });
  t.equal((await verifyLogin(challenge['mfaToken'])).status, 200);
});

t.test('an account without a password gets one', async (t) => {
  const { email } = await service.account({ passwordHash: null });
  await reset(await resetToken(email), NEW);
  t.equal((await login(email, NEW)).status, 200);
});

t.test('forgot answers 204 for any address and writes to active accounts only, at the stored address', async (t) => {
  await service.account({ email: 'unproven@example.com', verified: false });
  await service.account({ email: 'deleted@example.com', deletedAt: new Date() });
  await service.account({ email: 'disabled@example.com', status: 'disabled' });
  await service.account({ email: 'kate@example.com' });
  const silent = ['deleted@example.com', 'disabled@example.com', 'unknown@example.com', '\u212Aate@example.com', 'no address at all'];
  for (const email of ['UNPROVEN@example.com', ...silent]) {
    const { status, text } = await forgot(email);
    t.same({ status, text }, { status: 204, text: '' });
  }
  await token('unproven@example.com', 'reset');
  await sleep(QUIET_MS);
  for (const email of [...silent, 'kate@example.com']) t.same(inbox.to(email), []);
});

t.test('a deletion voids the token, for good', async (t) => {
  const { id, email } = await service.account();
  const good = await resetToken(email);
  await mysql.run('UPDATE users SET deleted_at = UTC_TIMESTAMP(3) WHERE id = ?', [id]);
  t.match(await reset(good, NEW), REFUSED);
});

t.test('a locked account can be reset, and a wrong guess after it counts from one', async (t) => {
  const { email } = await service.account();
  await lockOut(service.client(), email);
  t.equal((await reset(await resetToken(email), NEW)).status, 204);
  for (let i = 0; i < 4; i += 1) t.match((await login(email, WRONG)).body, { code: 'INVALID_CREDENTIALS' });
});
