import t from 'tap';
import { recoveryCodeHashes } from '../../../src/auth/factors.js';
import { codeOf, lockOut, pause, tally, WRONG } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import { challenge, codeAt, factorOwner, verify } from '../../support/factors.js';
import { openInbox } from '../../support/inbox.js';
import { newsOf } from '../../support/news.js';

const inbox = openInbox(t);
const service = await startApp(t, { LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '1', MFA_ISSUER: 'Example', ...inbox.settings });
const { client } = service;
const { mysql, clock, keyring } = service.app.needs;
const STEP = 30_000;

/** Waits for a step that does not end before a test is over. */
async function freshStep(): Promise<void> {
  const left = STEP - (clock.now() % STEP);
  if (left < 5_000) await pause(left);
}

t.test('an app is set up by password and code: then a login asks for it, and ten codes stand in', async (t) => {
  await freshStep();
  const ann = await factorOwner(service);
  t.same((await ann.ask('GET', '')).body, { factors: [], recoveryCodesLeft: 0 });
  const enrolment = await ann.enrol();
  t.equal(enrolment.status, 200);
  t.same(Object.keys(enrolment.body), ['secret', 'otpauthUrl']);
  const { secret, otpauthUrl } = enrolment.body as { secret: string; otpauthUrl: string };
  t.match(secret, /^[A-Z2-7]{32}$/);
  t.equal(new URL(otpauthUrl).searchParams.get('secret'), secret);
  t.equal(decodeURIComponent(otpauthUrl.split('?')[0]!), `otpauth://totp/Example:${ann.email}`);
  t.equal(enrolment.headers.get('cache-control'), 'no-store');

  t.match((await ann.ask('GET', '')).body, { factors: [{ method: 'totp', verified: false }], recoveryCodesLeft: 0 });
  t.match((await ann.client.login(ann.email, ann.password)).body, { accessToken: String }, 'not confirmed: no factor');
  t.match((await ann.client.profile(bearerOf(ann.bearer))).body, { mfaEnabled: false });

  const confirmed = await ann.confirm(ann.code(secret));
  t.equal(confirmed.status, 200);
  const codes = confirmed.body['recoveryCodes'] as string[];
  t.equal(new Set(codes).size, 10);
  const listed = (await ann.ask('GET', '')).body as { factors: { createdAt: string }[] };
  t.match(listed, { factors: [{ method: 'totp', verified: true }, { method: 'recovery_code', verified: true }], recoveryCodesLeft: 10 });
  for (const { createdAt } of listed.factors) t.equal(new Date(createdAt).toISOString(), createdAt);
  t.match((await ann.client.profile(bearerOf(ann.bearer))).body, { mfaEnabled: true });

  t.match((await client().login(ann.email, ann.password)).body, { mfaRequired: true, methods: ['totp', 'recovery_code'] });
  t.equal(codeOf(await verify(client(), await challenge(client(), ann), 'totp', ann.code(secret))), 'MFA_INVALID', 'the code that confirmed is used');
  t.equal(codeOf(await verify(client(), await challenge(client(), ann), 'totp', ann.code(secret, 1))), 'OK');
  t.equal(codeOf(await verify(client(), await challenge(client(), ann), 'recovery_code', codes[3])), 'OK');
  t.match((await ann.ask('GET', '')).body, { recoveryCodesLeft: 9 });
});

const bearerOf = ({ authorization }: Record<string, string>): string => authorization!.slice('Bearer '.length);

t.test('neither secret nor recovery codes are stored as they are', async (t) => {
  const ann = await factorOwner(service);
  const { secret, recoveryCodes } = await ann.secure();
  const rows = JSON.stringify([
    await mysql.rows('SELECT HEX(secret) AS secret FROM mfa_factors WHERE user_id = ?', [ann.id]),
    await mysql.rows('SELECT HEX(code_hash) AS hash FROM mfa_recovery_codes WHERE user_id = ?', [ann.id]),
  ]).toUpperCase();
  const hex = (text: string): string => Buffer.from(text).toString('hex').toUpperCase();
  t.equal(rows.match(/"HASH"/g)?.length, 10);
  for (const plain of [secret, ...recoveryCodes]) {
    for (const form of [plain.toUpperCase(), hex(plain), hex(plain.replace(/-/g, ''))]) t.notOk(rows.includes(form), 'a secret in the clear');
  }
});

t.test('another enrolment takes the place of one that was not confirmed', async (t) => {
  const ann = await factorOwner(service);
  const [first, second] = [(await ann.enrol()).body['secret'] as string, (await ann.enrol()).body['secret'] as string];
  t.not(first, second);
  t.equal(codeOf(await ann.confirm(ann.code(first))), 'MFA_INVALID');
  t.equal(codeOf(await ann.confirm(ann.code(second))), 'OK');
});

t.test('an app that is set up is not replaced without its code', async (t) => {
  const ann = await factorOwner(service);
  const { secret } = await ann.secure();
  t.match(await ann.enrol(), { status: 409, body: { code: 'MFA_ALREADY_ENROLLED' } });
  t.match(await ann.confirm(ann.code(secret)), { status: 409, body: { code: 'MFA_NOT_ENROLLED' } });
  t.equal(codeOf(await verify(client(), await challenge(client(), ann), 'totp', ann.code(secret))), 'OK', 'it goes on as before');
});

t.test('an enrolment waits an hour, then it can only be begun anew', async (t) => {
  const ann = await factorOwner(service);
  const secret = (await ann.enrol()).body['secret'] as string;
  await mysql.run('UPDATE mfa_factors SET created_at = created_at - INTERVAL 61 MINUTE WHERE user_id = ?', [ann.id]);
  t.equal(codeOf(await ann.confirm(ann.code(secret))), 'MFA_NOT_ENROLLED');
  t.ok((await ann.secure()).secret);
});

t.test('what was never begun cannot be confirmed, removed or renewed', async (t) => {
  const ann = await factorOwner(service);
  t.equal(codeOf(await ann.confirm('000000')), 'MFA_NOT_ENROLLED');
  t.equal(codeOf(await ann.remove('000000')), 'MFA_NOT_ENROLLED');
  t.equal(codeOf(await ann.renew()), 'MFA_NOT_ENROLLED');
  await ann.enrol();
  t.equal(codeOf(await ann.remove('000000')), 'MFA_NOT_ENROLLED', 'an enrolment is no factor');
  t.equal(codeOf(await ann.renew()), 'MFA_NOT_ENROLLED');
});

t.test('password and code remove the app, and the recovery codes with it', async (t) => {
  const ann = await factorOwner(service);
  const { secret, recoveryCodes } = await ann.secure();
  const waiting = await challenge(client(), ann);
  t.equal(codeOf(await ann.remove(ann.code(secret), WRONG)), 'INVALID_CREDENTIALS');
  t.equal(codeOf(await ann.remove('000000')), 'MFA_INVALID');
  t.equal(codeOf(await ann.remove(ann.code(secret, -1))), 'MFA_INVALID', 'a code that confirmed is used');
  t.match((await ann.ask('GET', '')).body, { factors: [{}, {}], recoveryCodesLeft: 10 }, 'nothing was removed');
  t.match(await ann.remove(ann.code(secret)), { status: 204, text: '' });
  t.same((await ann.ask('GET', '')).body, { factors: [], recoveryCodesLeft: 0 });
  t.equal(codeOf(await verify(client(), waiting, 'recovery_code', recoveryCodes[0])), 'MFA_TOKEN_INVALID', 'logins that waited for it are over');
  t.match((await client().login(ann.email, ann.password)).body, { accessToken: String });
  const rows = await mysql.rows('SELECT 1 FROM mfa_recovery_codes WHERE user_id = ?', [ann.id]);
  t.same(rows, []);
});

t.test('an app that is lost is removed by a recovery code', async (t) => {
  const ann = await factorOwner(service);
  const { recoveryCodes } = await ann.secure();
  t.equal(codeOf(await ann.remove('zzzz-zzzz-zzzz-zzzz')), 'MFA_INVALID');
  t.equal(codeOf(await ann.remove(recoveryCodes[9]!.toUpperCase())), 'OK');
});

t.test('each change is on record, sent as an event and told to the owner', async (t) => {
  const ann = await factorOwner(service);
  await ann.enrol();
  await ann.confirm('000000');
  const { recoveryCodes } = await ann.secure();
  await ann.renew();
  const renewed = (await ann.renew()).body['recoveryCodes'] as string[];
  t.equal(codeOf(await verify(client({ ip: '203.0.113.9' }), await challenge(client(), ann), 'recovery_code', recoveryCodes[0])), 'MFA_INVALID', 'a former code');
  t.equal(codeOf(await verify(client({ ip: '203.0.113.9' }), await challenge(client(), ann), 'recovery_code', renewed[0])), 'OK');
  await ann.remove(renewed[1]);
  const { audit, events } = await newsOf(mysql, ann.id);
  t.same(audit, [
    ['mfa.enrolment_started success', { factors: 0, recoveryCodes: 0 }],
    ['mfa.enabled failure', { outcome: 'MFA_INVALID', locked: false }],
    ['mfa.enrolment_started success', { factors: 0, recoveryCodes: 0 }],
    ['mfa.enabled success', { factors: 2, recoveryCodes: 10 }],
    ['mfa.recovery_codes_replaced success', { factors: 2, recoveryCodes: 10 }],
    ['mfa.recovery_codes_replaced success', { factors: 2, recoveryCodes: 10 }],
    ['mfa failure', { method: 'recovery_code', factors: 2, outcome: 'MFA_INVALID', locked: false }],
    ['mfa.recovery_code_used success', { factors: 2, recoveryCodes: 9 }],
    ['mfa success', { method: 'recovery_code', factors: 2, risks: ['new_network'] }],
    ['mfa.disabled success', { factors: 0, recoveryCodes: 0 }],
  ]);
  t.same(events, [
    { type: 'identity.mfa.enabled', userId: ann.id, factors: 2, recoveryCodes: 10 },
    { type: 'identity.mfa.recovery_codes_replaced', userId: ann.id, factors: 2, recoveryCodes: 10 },
    { type: 'identity.mfa.recovery_codes_replaced', userId: ann.id, factors: 2, recoveryCodes: 10 },
    { type: 'identity.mfa.recovery_code_used', userId: ann.id, factors: 2, recoveryCodes: 9 },
    { type: 'identity.mfa.disabled', userId: ann.id, factors: 0, recoveryCodes: 0 },
  ]);
  const used = await inbox.nth(ann.email, 'mfa_recovery_code_used');
  t.match(used, { channel: 'EMAIL', subject: 'A recovery code was used to sign in' });
  t.match(used.text, /From: 203\.0\.113\.9\n/);
  t.match(used.text, /You have 9 left/);
  for (const template of ['mfa_enabled', 'mfa_recovery_codes_replaced', 'mfa_disabled']) t.match((await inbox.nth(ann.email, template)).text, /127\.0\.0\.1/);
  const told = JSON.stringify(inbox.to(ann.email));
  for (const code of [...recoveryCodes, ...renewed]) t.notOk(told.includes(code), 'no mail holds a code');
});

t.test('a phone that is proven is told too, an address that is not is told nothing', async (t) => {
  const ann = await factorOwner(service, { phone: '+15555550142' });
  await ann.secure();
  t.match(await inbox.nth('+15555550142', 'mfa_enabled'), { channel: 'WHATSAPP' });
  const bob = await factorOwner(service, { verified: false });
  await bob.secure();
  t.equal((await newsOf(mysql, bob.id)).events.length, 1);
  t.same(inbox.to(bob.email), []);
});

t.test('of many that confirm, enrol or remove at once, one outcome stands', async (t) => {
  await freshStep();
  const ann = await factorOwner(service);
  const many = (work: () => Promise<unknown>): Promise<never[]> => Promise.all(Array.from({ length: 12 }, work)) as Promise<never[]>;
  const secrets = (await many(() => ann.enrol())).map(({ body }: { body: Record<string, string> }) => body['secret']!);
  t.equal(new Set(secrets).size, 12);
  const [row] = await mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM mfa_factors WHERE user_id = ?', [ann.id]);
  t.equal(Number(row!.n), 1);

  const secret = (await ann.enrol()).body['secret'] as string;
  const code = codeAt(secret, clock.now());
  t.same(tally(await many(() => ann.confirm(code))), { OK: 1, MFA_NOT_ENROLLED: 11 });
  t.match((await ann.ask('GET', '')).body, { factors: [{}, {}], recoveryCodesLeft: 10 });

  const codes = (await many(() => ann.renew())).map(({ body }: { body: { recoveryCodes: string[] } }) => body.recoveryCodes);
  t.match((await ann.ask('GET', '')).body, { factors: [{}, {}], recoveryCodesLeft: 10 });
  const kept = await mysql.rows<{ hash: Buffer }>('SELECT code_hash AS hash FROM mfa_recovery_codes WHERE user_id = ?', [ann.id]);
  const hashesOf = (list: string[]): string[] => list.map((one) => recoveryCodeHashes(keyring, ann.id, one)[0]!.toString('hex')).sort();
  const standing = kept.map(({ hash }) => hash.toString('hex')).sort().join();
  t.equal(codes.filter((list) => hashesOf(list).join() === standing).length, 1, 'the codes of one reply, all of them');

  const next = ann.code(secret, 1);
  t.same(tally(await many(() => ann.remove(next))), { OK: 1, MFA_NOT_ENROLLED: 11 });
  t.same((await newsOf(mysql, ann.id)).events.map(({ type }) => type).filter((type) => /enabled|disabled/.test(type)), ['identity.mfa.enabled', 'identity.mfa.disabled']);
});

t.test('nothing is changed without a credential, by a cookie without its XSRF value, or with a bad body', async (t) => {
  const ann = await factorOwner(service);
  const { secret } = await ann.secure();
  const browser = client();
  const token = await challenge(browser, ann);
  await browser.request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken: token, method: 'totp', code: ann.code(secret) }, headers: { 'x-token-delivery': 'cookie' } });
  const cookie = browser.cookieHeader();
  const xsrf = browser.jar.get('XSRF-TOKEN')!;
  const password = ann.password;
  const changes: [string, string, Record<string, unknown>][] = [
    ['POST', '/totp', { password }],
    ['POST', '/totp/confirm', { code: '123456' }],
    ['DELETE', '/totp', { password, code: ann.code(secret, 1) }],
    ['POST', '/recovery-codes', { password }],
  ];
  t.equal(codeOf(await client().request('GET', '/api/auth/mfa')), 'UNAUTHENTICATED');
  for (const [method, path, body] of changes) {
    t.equal(codeOf(await ann.ask(method, path, body, {})), 'UNAUTHENTICATED');
    for (const headers of [{ cookie }, { cookie, 'x-xsrf-token': `${xsrf}A` }, { cookie, 'x-xsrf-token': xsrf, 'sec-fetch-site': 'cross-site' }]) t.equal(codeOf(await ann.ask(method, path, body, headers)), 'CSRF_FAILED', path);
    for (const name of Object.keys(body)) for (const value of [undefined, null, 1, '', ['x'], {}]) t.equal(codeOf(await ann.ask(method, path, { ...body, [name]: value })), 'INVALID_REQUEST', `${path} ${name}`);
  }
  t.equal(codeOf(await ann.remove('1'.repeat(65))), 'INVALID_REQUEST');
  t.equal((await ann.ask('POST', '/recovery-codes', { password }, { cookie, 'x-xsrf-token': xsrf })).status, 200, 'with its value the cookie may');
});

t.test('a locked account changes no factor, whatever is right, and its session goes on', async (t) => {
  const ann = await factorOwner(service);
  const { secret } = await ann.secure();
  await lockOut(ann.client, ann.email);
  for (const answer of [await ann.enrol(), await ann.remove(ann.code(secret)), await ann.renew()]) t.equal(codeOf(answer), 'ACCOUNT_LOCKED');
  t.equal((await ann.ask('GET', '')).status, 200);
});
