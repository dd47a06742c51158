// Mostly waits.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { openInbox } from '../../support/inbox.js';
import { signedIn, stored, wrong } from '../../support/owner.js';
import { sha256 } from '../../../src/keyring.js';
import { PATIENCE_MS } from '../../support/patience.js';

const DAY_MS = 86_400_000;
const inbox = openInbox(t);
const service = await startApp(t, { ...inbox.settings, ACCOUNT_DELETION_GRACE_DAYS: '12', ACCOUNT_RETENTION_DAYS: '12' });
const { mysql } = service.app.needs;

t.test('the right code deletes the account, and everything that goes with it happens in that moment', async (t) => {
  const owner = await signedIn(service, inbox);
  const elsewhere = (await service.client().login(owner.email, owner.password)).body as { accessToken: string; refreshToken: string };
  const secrets = [randomBytes(32), randomBytes(32)];
  await mysql.run('INSERT INTO mfa_tokens (token_hash, user_id, expires_at) VALUES (?, ?, UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)', [sha256(secrets[0]!), owner.id]);
  await mysql.run("INSERT INTO account_tokens (token_hash, user_id, purpose, address_hash, expires_at) VALUES (?, ?, 'reset_password', REPEAT('a', 32), UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)", [sha256(secrets[1]!), owner.id]);

  const answer = await owner.delete(await owner.deletionCode());
  t.equal(answer.status, 200);
  t.same(Object.keys(answer.body), ['deletedAt', 'gracePeriodDays', 'permanentDeletionAt']);
  const { deletedAt, gracePeriodDays, permanentDeletionAt } = answer.body as { deletedAt: string; gracePeriodDays: number; permanentDeletionAt: string };
  t.equal(gracePeriodDays, 12);
  t.equal(Date.parse(permanentDeletionAt) - Date.parse(deletedAt), 12 * DAY_MS);

  const now = await stored(mysql, owner.id);
  t.equal(now.deletedAt?.toISOString(), deletedAt);
  t.equal(now.liveSessions, 0);
  t.match(now.events, [{ type: 'identity.user.deleted', time: deletedAt, userId: owner.id, email: owner.email, gracePeriodDays: 12, permanentDeletionAt }]);
  t.equal(now.events.length, 1);
  t.same(now.audit, ['account.deletion_requested success', 'account.deleted success']);
  for (const table of ['mfa_tokens', 'account_tokens']) t.same(await mysql.rows(`SELECT token_hash FROM ${table} WHERE user_id = ?`, [owner.id]), []);
  t.match((await inbox.nth(owner.email, 'account_deleted')).data, { restorableUntil: permanentDeletionAt });

  t.equal((await owner.client.profile(owner.token)).status, 401);
  t.equal((await owner.client.profile(elsewhere.accessToken)).status, 401);
  t.match((await owner.client.refresh(elsewhere.refreshToken)).body, { code: 'REFRESH_SESSION_REVOKED' });
  t.match((await owner.client.login(owner.email, owner.password)).body, { code: 'ACCOUNT_DELETED', permanentDeletionAt });
});

t.test('both prefixes delete', async (t) => {
  const owner = await signedIn(service, inbox);
  t.equal((await owner.requestDeletion('/auth/account')).status, 204);
  const { otp } = (await inbox.nth(owner.email, 'account_deletion_requested')).data;
  t.equal((await owner.delete(otp, '/auth/account')).status, 200);
});

t.test('in cookie mode a deletion demands the XSRF value and clears the four cookies', async (t) => {
  const owner = await signedIn(service, inbox);
  const browser = service.client();
  await browser.login(owner.email, owner.password, 'cookie');
  const cookies = { cookie: browser.cookieHeader() };
  const own = { ...cookies, 'x-xsrf-token': browser.jar.get('XSRF-TOKEN')! };
  t.match((await browser.request('POST', '/api/auth/account/delete-request', { headers: cookies })).body, { code: 'CSRF_FAILED' });
  t.equal((await browser.request('POST', '/api/auth/account/delete-request', { headers: own })).status, 204);
  const { otp } = (await inbox.nth(owner.email, 'account_deletion_requested')).data;
  t.match((await browser.request('DELETE', '/api/auth/account', { headers: cookies, body: { otp } })).body, { code: 'CSRF_FAILED' });
  t.match((await browser.request('DELETE', '/api/auth/account', { headers: { ...own, 'x-xsrf-token': 'x' }, body: { otp } })).body, { code: 'CSRF_FAILED' });
  t.equal((await stored(mysql, owner.id)).deletedAt, null);
  const answer = await browser.request('DELETE', '/api/auth/account', { headers: own, body: { otp } });
  t.equal(answer.status, 200);
  t.equal(answer.setCookies.length, 4);
  t.equal(browser.jar.size, 0);
});

t.test('a wrong, absent or malformed code deletes nothing', async (t) => {
  const owner = await signedIn(service, inbox);
  t.match(await owner.delete('12345678'), { status: 400, body: { code: 'OTP_INVALID' } });
  const code = await owner.deletionCode();
  t.match(code, /^\d{8}$/);
  t.match(await owner.delete(wrong(code)), { status: 400, body: { code: 'OTP_INVALID' } });
  t.match(await owner.delete(''), { status: 400, body: { code: 'INVALID_REQUEST', errors: [{ path: '/otp' }] } });
  t.match(await owner.delete(Number(code)), { status: 400, body: { code: 'INVALID_REQUEST' } });
  t.match(await owner.delete(undefined), { status: 400, body: { code: 'INVALID_REQUEST', errors: [{ path: '/otp', message: 'is required' }] } });
  t.match(await owner.client.request('DELETE', '/api/auth/account', { body: { otp: code } }), { status: 401, body: { code: 'UNAUTHENTICATED' } });
  const now = await stored(mysql, owner.id);
  t.equal(now.deletedAt, null);
  t.same(now.events, []);
  t.same(now.audit, ['account.deleted failure', 'account.deletion_requested success', 'account.deleted failure']);
  t.equal((await owner.delete(code)).status, 200);
});

t.test('whoever objects is named with every reason, the code stays good, and nothing else changes', async (t) => {
  const module = join(t.testdir(), 'objections.mjs');
  writeFileSync(
    module,
    `export default ({ on }) => on('identity.user.pre_deletion_validate', async ({ email, addBlockingReason }) => {
      if (email.startsWith('blocked')) { addBlockingReason('bookings', 'active booking'); addBlockingReason('wallet', 'money left'); }
      if (email.startsWith('thrown') || email.startsWith('blocked')) throw new Error('out of order');
      if (email.startsWith('hung')) await new Promise((resolve) => setTimeout(resolve, 60_000).unref());
    });`,
  );
  const service = await startApp(t, { ...inbox.settings, IDENTITY_HANDLERS: module });
  const { mysql } = service.app.needs;
  let [kept, asked] = [0, 0];
  const untouched = async (id: string): Promise<void> => {
    const now = await stored(mysql, id);
    asked += 1;
    if (now.deletedAt === null && now.liveSessions === 1 && now.events.length === 0) kept += 1;
    t.equal(now.deletedAt, null);
    t.equal(now.liveSessions, 1);
    t.same(now.events, []);
  };

  const blocked = await signedIn(service, inbox, { email: 'blocked@example.com' });
  const code = await blocked.deletionCode();
  const reasons = [{ source: 'bookings', reason: 'active booking' }, { source: 'wallet', reason: 'money left' }];
  t.match(await blocked.delete(code), { status: 409, body: { code: 'DELETION_BLOCKED', reasons } }, 'reasons count although the handler failed as well');
  await untouched(blocked.id);
  for (const name of ['thrown', 'hung']) {
    const owner = await signedIn(service, inbox, { email: `${name}@example.com` });
    t.match(await owner.delete(await owner.deletionCode()), { status: 503, body: { code: 'DELETION_CHECK_UNAVAILABLE' } });
    await untouched(owner.id);
  }
  t.equal((await blocked.delete(code)).status, 409, 'the code was given back');
  figure(t, 'T33', { did: 'handlers that object twice and throw, throw, hang', figure: `${kept} of ${asked} accounts whole, sessions alive, no event`, ok: kept === asked && asked === 3 });
  await mysql.run("UPDATE users SET email = 'free@example.com' WHERE id = ?", [blocked.id]);
  const free = (await service.client().login('free@example.com', blocked.password)).body as { accessToken: string };
  await service.client().request('POST', '/api/auth/account/delete-request', { headers: { authorization: `Bearer ${free.accessToken}` } });
  const { otp } = (await inbox.nth('free@example.com', 'account_deletion_requested')).data;
  t.equal((await blocked.delete(otp)).status, 200);
});

t.test('a required service that is silent keeps the account, one that only advises does not', async (t) => {
  const required = await startApp(t, { ...inbox.settings, DELETION_VALIDATORS: 'bookings:required' });
  const first = await signedIn(required, inbox);
  const code = await first.deletionCode();
  t.match(await first.delete(code), { status: 503, body: { code: 'DELETION_CHECK_UNAVAILABLE' } });
  t.equal((await stored(required.app.needs.mysql, first.id)).deletedAt, null);

  // Now it answers, with a reason at first.
  const { redis } = required.app.needs;
  const services = redis.duplicate();
  t.teardown(() => services.disconnect());
  await services.connect();
  let objection: string | undefined = 'active booking';
  services.on('message', (_channel, message: string) => void redis.rpush((JSON.parse(message) as { replyTo: string }).replyTo, JSON.stringify({ source: 'bookings', reason: objection })));
  await services.subscribe('identity.user.pre_deletion_validate');
  t.match(await first.delete(code), { status: 409, body: { code: 'DELETION_BLOCKED', reasons: [{ source: 'bookings', reason: 'active booking' }] } });
  objection = undefined;
  t.equal((await first.delete(code)).status, 200);

  const advisory = await startApp(t, { ...inbox.settings, DELETION_VALIDATORS: 'crm:advisory' });
  const second = await signedIn(advisory, inbox);
  t.equal((await second.delete(await second.deletionCode())).status, 200);
});

t.test('a deletion that fails at its last step changes nothing and gives the code back', async (t) => {
  const owner = await signedIn(service, inbox);
  const code = await owner.deletionCode();
  await mysql.run('RENAME TABLE notification_outbox TO notification_outbox_away');
  t.equal((await owner.delete(code)).status, 500);
  await mysql.run('RENAME TABLE notification_outbox_away TO notification_outbox');
  const now = await stored(mysql, owner.id);
  t.equal(now.deletedAt, null);
  t.equal(now.liveSessions, 1);
  t.same(now.events, []);
  t.same(now.audit, ['account.deletion_requested success']);
  t.equal((await owner.delete(code)).status, 200);
});

t.test('a subscriber hears of a deletion after it is committed', async (t) => {
  const owner = await signedIn(service, inbox);
  const subscriber = service.app.needs.redis.duplicate();
  t.teardown(() => subscriber.disconnect());
  await subscriber.connect();
  const heard = new Promise<string>((resolve) => subscriber.once('message', (_channel, message: string) => resolve(message)));
  await subscriber.subscribe('identity.user.deleted');
  await owner.delete(await owner.deletionCode());
  const message = await Promise.race([heard, sleep(PATIENCE_MS, '{}', { ref: false })]);
  t.match(JSON.parse(message), { type: 'identity.user.deleted', userId: owner.id });
});
