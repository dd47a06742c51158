// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { createLog } from '../../../src/log.js';
import { createMysql } from '../../../src/store/mysql.js';
import { startApp } from '../../support/app.js';
import { openInbox } from '../../support/inbox.js';
import { count, times } from '../../support/otp.js';
import { signedIn, stored, wrong, type Owner } from '../../support/owner.js';

const DAY_MS = 86_400_000;
const inbox = openInbox(t);
const service = await startApp(t, inbox.settings);
const { mysql } = service.app.needs;

async function deleted(wanted = {}): Promise<Owner> {
  const owner = await signedIn(service, inbox, wanted);
  await owner.delete(await owner.deletionCode());
  return owner;
}

const setDeletedAt = (owner: Owner, msAgo: number) => mysql.run('UPDATE users SET deleted_at = UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND WHERE id = ?', [msAgo * 1000, owner.id]);

t.test('within the grace period the right code restores the account and signs nobody in', async (t) => {
  const owner = await deleted({ phone: '+4915122222222' });
  const { deletedAt } = await stored(mysql, owner.id);
  const code = await owner.restoreCode();
  await mysql.run("INSERT INTO mfa_tokens (token_hash, user_id, expires_at) VALUES (REPEAT('m', 32), ?, UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)", [owner.id]);
  await mysql.run("INSERT INTO account_tokens (token_hash, user_id, purpose, address_hash, expires_at) VALUES (REPEAT('r', 32), ?, 'reset_password', REPEAT('a', 32), UTC_TIMESTAMP(3) + INTERVAL 1 HOUR)", [owner.id]);
  const answer = await owner.restore(code);
  t.equal(answer.status, 200);
  t.same(Object.keys(answer.body), ['restoredAt']);
  t.same(answer.setCookies, []);

  const now = await stored(mysql, owner.id);
  t.equal(now.deletedAt, null);
  t.equal(now.liveSessions, 0, 'ended sessions stay ended');
  t.match(now.events[1], { type: 'identity.user.restored', time: answer.body['restoredAt'], userId: owner.id, email: owner.email, originalDeletionAt: deletedAt!.toISOString() });
  t.same(now.audit.slice(-2), ['account.restore_requested success', 'account.restored success']);
  for (const table of ['mfa_tokens', 'account_tokens']) t.same(await mysql.rows(`SELECT token_hash FROM ${table} WHERE user_id = ?`, [owner.id]), []);
  await inbox.nth(owner.email, 'account_restored');
  t.equal((await inbox.nth('+4915122222222', 'account_restored')).channel, 'WHATSAPP');
  t.equal((await owner.client.profile(owner.token)).status, 401);
  t.equal((await owner.client.login(owner.email, owner.password)).status, 200);
});

t.test('both prefixes restore, and the address is compared without regard to ASCII case', async (t) => {
  const owner = await deleted({ email: 'mixed.case@example.com' });
  const shout = { email: 'MIXED.Case@Example.COM' };
  t.equal((await service.client().request('POST', '/auth/account/restore-request', { body: shout })).status, 204);
  const { otp } = (await inbox.nth(owner.email, 'account_restore_requested')).data;
  t.equal((await service.client().request('POST', '/auth/account/restore', { body: { ...shout, otp } })).status, 200);
});

t.test('a wrong code is answered alike for a deleted, an active and an unknown account, up to the lock', async (t) => {
  const gone = await deleted();
  const code = await gone.restoreCode();
  const active = await signedIn(service, inbox);
  const replies = [];
  for (const email of [gone.email, active.email, 'nobody@example.com']) {
    const answers = [];
    for (let i = 0; i < 7; i += 1) {
      const { status, headers, body } = await service.client().request('POST', '/api/auth/account/restore', { body: { email, otp: wrong(code) } });
      const { requestId: _id, retryAfter, ...rest } = body;
      answers.push({ status, rest, headers: [...headers.keys()].sort(), retries: typeof retryAfter });
    }
    t.same(answers.map(({ rest }) => rest['code']), [...Array<string>(5).fill('OTP_INVALID'), 'OTP_LOCKED', 'OTP_LOCKED']);
    replies.push(answers);
  }
  t.same(replies[1], replies[0]);
  t.same(replies[2], replies[0]);
  t.match(await gone.restore(code), { status: 429, body: { code: 'OTP_LOCKED' } });
});

t.test('once the grace period is over the right code gets 410 and restores nothing; a wrong one learns nothing', async (t) => {
  const owner = await deleted();
  await setDeletedAt(owner, 30 * DAY_MS + 1000);
  const code = await owner.restoreCode();
  t.match(await owner.restore(wrong(code)), { status: 400, body: { code: 'OTP_INVALID' } });
  t.match(await owner.restore(code), { status: 410, body: { code: 'RESTORE_EXPIRED' } });
  const now = await stored(mysql, owner.id);
  t.type(now.deletedAt, Date);
  t.equal(now.events.length, 1);
  await setDeletedAt(owner, 30 * DAY_MS - 5000);
  t.equal((await owner.restore(code)).status, 200, 'within the period the same code is good: it was given back');
});

t.test('the grace period ends by the clock of the database, to the second', async (t) => {
  const owner = await deleted();
  const code = await owner.restoreCode();
  await setDeletedAt(owner, 30 * DAY_MS - 300);
  await sleep(350);
  t.equal((await owner.restore(code)).status, 410);
});

t.test('a purge and a restore of one account wait for each other, and one wins', async (t) => {
  const other = createMysql({ url: service.env['MYSQL_URL']!, connections: 2, log: createLog('silent') });
  t.teardown(() => other.close());
  const [purged, kept] = [await deleted(), await deleted()];
  const codes = [await purged.restoreCode(), await kept.restoreCode()] as const;
  let restoring: Promise<{ status: number }> | undefined;
  await other.transaction(async (tx) => {
    await tx.rows('SELECT id FROM users WHERE id IN (?, ?) FOR UPDATE', [purged.id, kept.id]);
    restoring = purged.restore(codes[0]);
    await sleep(100);
    await tx.run('DELETE FROM users WHERE id = ?', [purged.id]);
  });
  t.match(await restoring, { status: 410, body: { code: 'RESTORE_EXPIRED' } });
  t.same((await mysql.rows<{ type: string }>('SELECT type FROM event_outbox WHERE user_id = ?', [purged.id])).map(({ type }) => type), ['identity.user.deleted']);
  t.equal((await kept.restore(codes[1])).status, 200);
  t.same(await mysql.rows('SELECT id FROM users WHERE id = ? AND deleted_at IS NOT NULL', [kept.id]), [], 'nothing is left for a purge that comes later');
});

t.test('of many restores at once with the right code one succeeds; a deletion may follow and be undone again', async (t) => {
  const owner = await deleted();
  const code = await owner.restoreCode();
  const statuses = (await times(50, () => owner.restore(code))).map(({ status }) => status);
  t.equal(count(statuses, 200), 1);
  t.equal(count(statuses, 400), 49);
  const next = await owner.client.login(owner.email, owner.password);
  const bearer = { authorization: `Bearer ${next.body['accessToken'] as string}` };
  await owner.client.request('POST', '/api/auth/account/delete-request', { headers: bearer });
  const { otp } = (await inbox.nth(owner.email, 'account_deletion_requested', 2)).data;
  t.equal((await owner.client.request('DELETE', '/api/auth/account', { headers: bearer, body: { otp } })).status, 200);
  t.equal((await owner.restore(await owner.restoreCode())).status, 200);
  t.same((await stored(mysql, owner.id)).events.map(({ type }) => (type as string).split('.')[2]), ['deleted', 'restored', 'deleted', 'restored']);
});

t.test('a session that a login left behind during the deletion does not come to life with the account', async (t) => {
  const owner = await deleted();
  await mysql.run('UPDATE sessions SET revoked_at = NULL, revoked_reason = NULL WHERE user_id = ?', [owner.id]);
  t.equal((await owner.client.profile(owner.token)).status, 401);
  t.equal((await owner.restore(await owner.restoreCode())).status, 200);
  t.equal((await owner.client.profile(owner.token)).status, 401);
});

t.test('an account that an operator disabled stays disabled when it is restored', async (t) => {
  const owner = await deleted();
  await mysql.run("UPDATE users SET status = 'disabled' WHERE id = ?", [owner.id]);
  t.equal((await owner.restore(await owner.restoreCode())).status, 200);
  t.match((await owner.client.login(owner.email, owner.password)).body, { code: 'ACCOUNT_INACTIVE' });
});
