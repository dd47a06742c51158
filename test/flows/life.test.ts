import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { parse } from 'uuid';
import { subjectOf } from '../../src/keyring.js';
import { addRecoveryCodes } from '../support/accounts.js';
import type { Answer, Issued } from '../support/client.js';
import { parseCsv } from '../support/csv.js';
import { everyKey } from '../support/keyspace.js';
import { startMailServer } from '../support/mail.js';
import { startNodes } from '../support/nodes.js';
import { otherService, startProvider, type Heard } from '../support/outside.js';
import { stored, wrong } from '../support/owner.js';
import { until } from '../support/patience.js';
import { findInMysql, findInRedis, furnish } from '../support/personal.js';

// One account from its first login to its purge, on two nodes with the limits of production: each part goes on where
// the one before ended, and what it changed is read from MySQL.

const CLI = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const ACCOUNT = '/api/auth/account';
const DAY_MS = 86_400_000;
const EMAIL = 'erika.mustermann-7@example.com';
const PHONE = '+491701234567';

const folder = t.testdir();
const objection = join(folder, 'objection');
writeFileSync(
  join(folder, 'bookings.mjs'),
  `import { existsSync } from 'node:fs';
  export default ({ on }) => on('identity.user.pre_deletion_validate', ({ addBlockingReason }) => {
    if (existsSync(${JSON.stringify(objection)})) addBlockingReason('bookings', 'active booking');
  });`,
);

const post = await startMailServer(t);
const { url: whatsappUrl, messages: whatsapp } = await startProvider(t);
const { nodes, env, needs, account } = await startNodes(t, 2, {
  LOG_LEVEL: 'debug',
  SMTP_URL: post.url,
  WHATSAPP_URL: whatsappUrl,
  IDENTITY_HANDLERS: join(folder, 'bookings.mjs'),
  DELETION_VALIDATORS: 'wallet:required',
  LOCKOUT_MINUTES: '0.01',
  LIMIT_DELETE_REQUEST: '3/300',
  LIMIT_DELETE: '5/300',
  LIMIT_RESTORE_REQUEST: '3/300',
  LIMIT_RESTORE: '5/300',
  LIMIT_EXPORT: '5/3600',
  LIMIT_REFRESH_SESSION: '30/300',
  LIMIT_REFRESH_IP: '300/300',
  LIMIT_LOGIN_IP: '100/300',
});
const { mysql, keyring } = needs;
const [here, there] = [nodes[0]!, nodes[1]!];

const { heard, questions, object, streamed, redis } = await otherService(t, env['REDIS_URL']!, 'wallet');

/** The nth event that the subscriber heard; the stream has the same by then. */
async function nthEvent(t: Test, n: number): Promise<Heard> {
  await until(async () => heard.length >= n);
  t.equal(heard.length, n, `${n} events so far`);
  t.same(await streamed(), heard, 'the stream has what the subscriber heard');
  return heard[n - 1]!;
}

/** The nth mail; every one goes to the address of the account. */
async function nthMail(t: Test, n: number, subject: string): Promise<string> {
  const mail = (await post.received(n))[n - 1]!;
  t.same(mail.to, [EMAIL]);
  t.ok(mail.headers.includes(`Subject: ${subject}`), subject);
  return mail.text;
}

const codeIn = (text: string): string => /^ {4}(\d{8})$/m.exec(text)![1]!;
const { id, password } = await account({ email: EMAIL, phone: PHONE });
const subject = subjectOf(keyring, id);
const client = here.client({ userAgent: 'Erikas Telefon' });
const elsewhere = there.client({ userAgent: 'Erikas Telefon' });
const browser = here.client({ userAgent: 'Erikas Browser' });
const codeIsOf = (answer: Answer): unknown => answer.body['code'];

let issued: Issued;
let code: string;
let totp: (at?: number) => string;
const authorised = () => ({ authorization: `Bearer ${issued.accessToken}` });
const owned = () => ({ cookie: browser.cookieHeader(), 'x-xsrf-token': browser.jar.get('XSRF-TOKEN')! });
const requestDeletion = () => client.request('POST', `${ACCOUNT}/delete-request`, { headers: authorised() });
const remove = (otp: string) => client.request('DELETE', ACCOUNT, { headers: authorised(), body: { otp } });

t.test('the owner signs in by token and by cookie, mistypes once, and refreshes on another node', async (t) => {
  t.equal(codeIsOf(await client.login(EMAIL, 'not my password')), 'INVALID_CREDENTIALS');
  issued = (await client.login(EMAIL.toUpperCase(), password)).body as unknown as Issued;
  t.match(await browser.login(EMAIL, password, 'cookie'), { status: 200, text: '{"ok":true}' });
  issued = (await elsewhere.refresh(issued.refreshToken)).body as unknown as Issued;
  for (const node of [client, elsewhere]) t.match((await node.profile(issued.accessToken)).body, { id, email: EMAIL, phone: PHONE });
  t.match((await browser.profile()).body, { id });
  t.match(await stored(mysql, id), { deletedAt: null, liveSessions: 2, events: [] });
  t.match(await nthEvent(t, 1), { type: 'identity.user.risk_detected', userId: id, risks: ['new_device'] }, 'the browser was new');
});

t.test('a code for the deletion comes by mail and by WhatsApp, and stands nowhere in the clear', async (t) => {
  t.match(await requestDeletion(), { status: 204, text: '' });
  code = codeIn(await nthMail(t, 1, 'Your code to delete your account'));
  await until(async () => whatsapp.length === 1);
  t.match(whatsapp[0], { to: PHONE, template: 'account_deletion_requested' });
  t.ok(whatsapp[0]!.text.includes(code));
  t.same(await findInMysql(mysql, [code]), []);
  t.same(await findInRedis(redis, [code]), []);
  t.same((await stored(mysql, id)).audit, ['account.deletion_requested success']);
});

t.test('while somebody objects the account stays, and every reason is told', async (t) => {
  writeFileSync(objection, '');
  object('money left');
  const reasons = [{ source: 'bookings', reason: 'active booking' }, { source: 'wallet', reason: 'money left' }];
  t.match(await remove(code), { status: 409, body: { code: 'DELETION_BLOCKED', reasons } });
  rmSync(objection);
  t.match(await browser.request('DELETE', ACCOUNT, { headers: owned(), body: { otp: code } }), { status: 409, body: { reasons: [reasons[1]] } });
  object(undefined);
  t.match(questions, [{ userId: id, email: EMAIL }, { userId: id, email: EMAIL }]);
  t.match(await stored(mysql, id), { deletedAt: null, liveSessions: 2, events: [], audit: ['account.deletion_requested success', 'account.deleted failure', 'account.deleted failure'] });
  t.equal((await client.profile(issued.accessToken)).status, 200);
  t.equal(heard.length, 1, 'nobody was told of a deletion');
});

t.test('the deletion ends every session on every node at once, and is told to the owner and to other services', async (t) => {
  t.equal(codeIsOf(await remove(wrong(code))), 'OTP_INVALID');
  const cookies = browser.cookieHeader();
  const answer = await browser.request('DELETE', ACCOUNT, { headers: owned(), body: { otp: code } });
  const dead = await Promise.all([elsewhere.profile(issued.accessToken), client.profile(issued.accessToken), elsewhere.request('GET', '/api/auth/profile', { headers: { cookie: cookies } })]);
  t.same(dead.map(({ status }) => status), [401, 401, 401]);
  t.equal(codeIsOf(await elsewhere.refresh(issued.refreshToken)), 'REFRESH_SESSION_REVOKED');

  t.equal(answer.status, 200);
  t.equal(browser.jar.size, 0, 'the browser forgets its cookies');
  const { deletedAt, gracePeriodDays, permanentDeletionAt, ...rest } = answer.body as Record<string, string>;
  t.same([gracePeriodDays, Date.parse(permanentDeletionAt!) - Date.parse(deletedAt!), rest], [30, 30 * DAY_MS, {}]);
  const event = await nthEvent(t, 2);
  t.same(event, { id: event.id, type: 'identity.user.deleted', time: deletedAt, userId: id, email: EMAIL, gracePeriodDays, permanentDeletionAt });
  const now = await stored(mysql, id);
  t.match(now, { liveSessions: 0, events: [event] });
  t.equal(now.deletedAt!.toISOString(), deletedAt);
  t.same(now.audit.slice(-2), ['account.deleted failure', 'account.deleted success']);
  t.match(await nthMail(t, 2, 'Your account was deleted'), 'still restore it for 30 days');

  t.match((await client.login(EMAIL, password)).body, { code: 'ACCOUNT_DELETED', permanentDeletionAt });
  t.equal(codeIsOf(await client.login(EMAIL, 'not my password')), 'INVALID_CREDENTIALS');
});

t.test('a code asked for by the address in capitals restores the account; what had ended stays ended', async (t) => {
  const [, before] = heard;
  t.match(await client.request('POST', `${ACCOUNT}/restore-request`, { body: { email: EMAIL.toUpperCase() } }), { status: 204, text: '' });
  code = codeIn(await nthMail(t, 3, 'Your code to restore your account'));
  t.equal(codeIsOf(await client.request('POST', `${ACCOUNT}/restore`, { body: { email: EMAIL, otp: wrong(code) } })), 'OTP_INVALID');
  const answer = await elsewhere.request('POST', `${ACCOUNT}/restore`, { body: { email: EMAIL, otp: code } });
  t.match(answer, { status: 200, setCookies: [] });
  t.same(Object.keys(answer.body), ['restoredAt']);
  const event = await nthEvent(t, 3);
  const originalDeletionAt = before!.time;
  t.same(event, { id: event.id, type: 'identity.user.restored', time: answer.body['restoredAt'], userId: id, email: EMAIL, originalDeletionAt });
  t.match(await stored(mysql, id), { deletedAt: null, liveSessions: 0, events: [before, event] });
  await nthMail(t, 4, 'Welcome back: your account is restored');

  t.equal((await client.profile(issued.accessToken)).status, 401);
  t.equal(codeIsOf(await client.refresh(issued.refreshToken)), 'REFRESH_SESSION_REVOKED');
});

t.test('the owner is back with a second factor and takes the data along, as JSON and as CSV', async (t) => {
  totp = await furnish(needs, { id }, ['Erikas Vorname']);
  await addRecoveryCodes(needs, id, ['11111-11111']);
  const { mfaToken } = (await client.login(EMAIL, password)).body;
  const verify = (otp: string) => elsewhere.request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method: 'totp', code: otp } });
  t.equal(codeIsOf(await verify('000000')), 'MFA_INVALID');
  issued = (await verify(totp())).body as unknown as Issued;
  t.equal((await stored(mysql, id)).liveSessions, 1);

  const inJson = await client.request('GET', `${ACCOUNT}/export`, { headers: authorised() });
  t.match(inJson.body, { user: { id, email: EMAIL }, profiles: [{ givenName: 'Erikas Vorname' }] });
  t.same((inJson.body['mfa'] as { method: string }[]).map(({ method }) => method).sort(), ['recovery_code', 'totp']);
  const inCsv = await elsewhere.request('GET', '/auth/account/export?format=csv', { headers: authorised() });
  const { user, auditLog } = inCsv.body['sheets'] as Record<string, string>;
  t.same(parseCsv(user!)[1]!.slice(0, 2), [id, EMAIL]);
  const told = (inJson.body['auditLog'] as { action: string }[]).map(({ action }) => action);
  t.same(told.filter((action) => action === 'account.deleted' || action === 'account.restored'), ['account.deleted', 'account.deleted', 'account.deleted', 'account.deleted', 'account.restored', 'account.restored']);
  t.same(parseCsv(auditLog!).slice(1).map(([action]) => action), [...told, 'account.exported']);
});

t.test('deleted once more and left alone, the account is locked against guesses and then past its grace', async (t) => {
  await requestDeletion();
  code = codeIn(await nthMail(t, 5, 'Your code to delete your account'));
  t.equal((await remove(code)).status, 200);
  t.match(await nthEvent(t, 4), { type: 'identity.user.deleted', userId: id });
  await nthMail(t, 6, 'Your account was deleted');
  for (let guess = 0; guess < 5; guess += 1) await client.login(EMAIL, `guess ${guess}`);
  t.equal(codeIsOf(await elsewhere.login(EMAIL, password)), 'ACCOUNT_LOCKED');
  t.equal((await mysql.rows('SELECT id FROM users WHERE id = ? AND locked_until IS NOT NULL', [id])).length, 1);

  await mysql.run('UPDATE users SET deleted_at = deleted_at - INTERVAL 31 DAY WHERE id = ?', [id]);
  await client.request('POST', `${ACCOUNT}/restore-request`, { body: { email: EMAIL } });
  code = codeIn(await nthMail(t, 7, 'Your code to restore your account'));
  t.match(await client.request('POST', `${ACCOUNT}/restore`, { body: { email: EMAIL, otp: code } }), { status: 410, body: { code: 'RESTORE_EXPIRED' } });
});

const words = [id, EMAIL, EMAIL.split('@')[0]!, PHONE, 'Erikas'];
const inMysql = [...words, Buffer.from(parse(id))];
const retention = async (t: Test, ...more: string[]): Promise<unknown> => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [CLI, '--json', 'retention', 'run', ...more], { env: { PATH: process.env['PATH'], ...env } });
  t.same(words.filter((word) => `${stdout}${stderr}`.includes(word)), [], 'the command names nobody');
  return JSON.parse(stdout);
};

t.test('the purge removes every row and tells other services; only the keyed hash of the audit is left', async (t) => {
  const [{ deletedAt }, before] = [await stored(mysql, id), await findInMysql(mysql, inMysql)];
  for (const place of ['users.email', 'users.phone', 'sessions.user_id', 'sessions.device', 'profiles.given_name', 'audit_log.user_id', 'login_sources.user_id', 'event_outbox.message', 'notification_outbox.user_id']) t.ok(before.includes(place), place);
  t.same(await retention(t, '--dry-run'), { due: 1, purged: 0, dryRun: true });
  t.ok(await stored(mysql, id), 'a dry run leaves it');
  t.same(await retention(t), { due: 1, purged: 1, dryRun: false });

  const event = await nthEvent(t, 5);
  t.same(event, { id: event.id, type: 'identity.user.permanently_deleted', time: event.time, userId: id, email: EMAIL, originalDeletionAt: deletedAt!.toISOString(), daysInDeletedState: 31 });
  t.equal(new Set(heard.map((one) => one.id)).size, 5);
  await until(async () => (await mysql.rows('SELECT seq FROM event_outbox')).length === 0);
  t.same(await findInMysql(mysql, inMysql), []);
  const left = await mysql.rows<Record<string, unknown>>('SELECT subject, action, user_id, ip_address FROM audit_log');
  t.ok(left.length > 15, `${left.length} entries`);
  t.same(left.filter((entry) => entry['subject'] !== subject || entry['user_id'] !== null || entry['ip_address'] !== null), []);
  t.equal(left.at(-1)!['action'], 'account.purged');
});

t.test('nothing brings it back', async (t) => {
  t.match(await client.request('POST', `${ACCOUNT}/restore`, { body: { email: EMAIL, otp: code } }), { status: 400, body: { code: 'OTP_INVALID' } });
  t.equal((await client.request('POST', `${ACCOUNT}/restore-request`, { body: { email: EMAIL } })).status, 204);
  t.match(await client.profile(issued.accessToken), { status: 401 });
  t.equal(codeIsOf(await client.refresh(issued.refreshToken)), 'REFRESH_SESSION_DELETED');
  let answer = await client.login(EMAIL, password);
  // The lock of an address outlives its account, as it would for an address that never had one.
  await until(async () => answer.status !== 429 || ((answer = await elsewhere.login(EMAIL, password)), false));
  t.equal(codeIsOf(answer), 'INVALID_CREDENTIALS');
});

t.test('after all this nobody finds the address or the id in MySQL, in Redis but for the stream, or in a log', async (t) => {
  t.same(await Promise.all(nodes.map((node) => node.stop())), [0, 0]);
  t.equal(post.mails.length, 7, 'no mail went to a purged account');
  t.same(whatsapp.map(({ template }) => template), ['account_deletion_requested', 'account_deleted', 'account_restored', 'account_deletion_requested', 'account_deleted']);
  t.same(await findInMysql(mysql, inMysql), []);
  t.ok((await everyKey(redis)).length > 8, 'Redis had been told much');
  t.same(await findInRedis(redis, words), ['idp:events'], 'the stream is for other services');
  for (const node of nodes) {
    const log = node.output();
    t.ok(log.includes(subject) && log.includes('"msg":"stopping"'), 'there is a log, up to its end');
    t.same(words.filter((word) => log.toLowerCase().includes(word.toLowerCase())), []);
  }
  const logs = nodes.map((node) => node.output()).join('');
  for (const message of ['account deleted', 'account restored', 'attempt refused', 'signed in', 'notification sent']) t.ok(logs.includes(message), `a log says: ${message}`);
});
