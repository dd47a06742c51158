// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { sha256 } from '../../../src/keyring.js';
import { startApp } from '../../support/app.js';
import { openInbox } from '../../support/inbox.js';
import { QUIET_MS, signUpAt } from '../../support/sign-up.js';

const inbox = openInbox(t);
const service = await startApp(t, inbox.settings);
const { mysql } = service.app.needs;
const { register, verify, resend, forgot, reset, token, resetToken } = signUpAt(service, inbox);
const PASSWORD = 'a password of my own';

const user = async (email: string) => (await mysql.rows<{ id: string; verified: Date | null }>('SELECT id, email_verified_at AS verified FROM users WHERE email = ?', [email]))[0]!;
const REFUSED = { status: 400, body: { code: 'TOKEN_INVALID' } };

/** A new account that is not verified, with its token. */
async function newcomer(email: string): Promise<string> {
  await register(email, PASSWORD);
  return token(email, 'verify');
}

t.test('the token proves the address, once, with an event and an audit entry', async (t) => {
  const good = await newcomer('ann@example.com');
  t.match(await verify(good), { status: 204, text: '' });
  const { id, verified } = await user('ann@example.com');
  t.ok(verified);
  t.match(await verify(good), REFUSED, 'used');
  t.same((await mysql.rows<{ type: string }>('SELECT type FROM event_outbox WHERE user_id = ? ORDER BY seq', [id])).map(({ type }) => type), ['identity.user.registered', 'identity.user.email_verified']);
  t.equal((await mysql.rows("SELECT id FROM audit_log WHERE user_id = ? AND action = 'email.verified'", [id])).length, 1);
  const { accessToken } = (await service.client().login('ann@example.com', PASSWORD)).body;
  t.match((await service.client().profile(accessToken as string)).body, { emailVerified: true });
});

t.test('only the hash of a token is stored, and no part of it in the queue', async (t) => {
  const good = await newcomer('hashed@example.com');
  const { id } = await user('hashed@example.com');
  const [row] = await mysql.rows<{ hash: Buffer }>('SELECT token_hash AS hash FROM account_tokens WHERE user_id = ?', [id]);
  t.same(row!.hash, sha256(good));
});

t.test('a token that was replaced, expired, made up, or is of another purpose proves nothing', async (t) => {
  const first = await newcomer('bob@example.com');
  t.equal((await resend('Bob@example.com')).status, 204);
  const second = await token('bob@example.com', 'verify', 2);
  const { id } = await user('bob@example.com');
  t.match(await verify(first), REFUSED, 'replaced');
  t.match(await verify(await resetToken('bob@example.com')), REFUSED, 'of another purpose');
  for (const wrong of [`${second}x`, second.slice(0, -1), ` ${second}`, second.toUpperCase(), '\u0000', 'A'.repeat(43), "' OR 1=1 --"]) t.match(await verify(wrong), REFUSED, wrong);
  for (const malformed of ['', 'x'.repeat(129), 17, null, undefined, [second]]) t.match(await verify(malformed), { status: 400, body: { code: 'INVALID_REQUEST' } });
  await mysql.run('UPDATE account_tokens SET expires_at = UTC_TIMESTAMP(3) WHERE user_id = ?', [id]);
  t.match(await verify(second), REFUSED, 'expired');
  t.equal((await user('bob@example.com')).verified, null);
  await mysql.run('UPDATE account_tokens SET expires_at = UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE WHERE user_id = ?', [id]);
  t.equal((await verify(second)).status, 204, 'and was good all the time');
});

t.test('a token is for the account and the address it was mailed to', async (t) => {
  const [moved, disabled, deleted] = [await newcomer('moved@example.com'), await newcomer('off@example.com'), await newcomer('gone@example.com')];
  await mysql.run("UPDATE users SET email = 'elsewhere@example.com' WHERE email = 'moved@example.com'");
  await mysql.run("UPDATE users SET status = 'disabled' WHERE email = 'off@example.com'");
  await mysql.run("UPDATE users SET deleted_at = UTC_TIMESTAMP(3) WHERE email = 'gone@example.com'");
  for (const one of [moved, disabled, deleted]) t.match(await verify(one), REFUSED);
  t.equal((await user('elsewhere@example.com')).verified, null);
});

t.test('resend answers 204 for any address and mails only those that are not proven', async (t) => {
  await newcomer('new@example.com');
  await service.account({ email: 'proven@example.com' });
  await service.account({ email: 'deleted@example.com', verified: false, deletedAt: new Date() });
  await service.account({ email: 'disabled@example.com', verified: false, status: 'disabled' });
  const all = ['new@example.com', 'proven@example.com', 'deleted@example.com', 'disabled@example.com', 'unknown@example.com', 'no address at all'];
  for (const email of all) t.match(await resend(email), { status: 204, text: '' });
  await token('new@example.com', 'verify', 2);
  await sleep(QUIET_MS);
  for (const email of all.slice(1)) t.same(inbox.to(email), []);
});

t.test('a reset proves the address, and the verification token is void then', async (t) => {
  const verification = await newcomer('reset@example.com');
  await forgot('reset@example.com');
  t.equal((await reset(await token('reset@example.com', 'reset'), 'quite another password')).status, 204);
  const { id, verified } = await user('reset@example.com');
  t.ok(verified);
  t.match(await verify(verification), REFUSED);
  const types = (await mysql.rows<{ type: string }>('SELECT type FROM event_outbox WHERE user_id = ? ORDER BY seq', [id])).map(({ type }) => type);
  t.same(types, ['identity.user.registered', 'identity.user.email_verified', 'identity.user.password_changed']);
});
