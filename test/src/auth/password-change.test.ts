import t from 'tap';
import { startApp } from '../../support/app.js';
import { addTotp, type NewAccount } from '../../support/accounts.js';
import { codeOf, pause, tally, WRONG } from '../../support/attempts.js';
import type { Answer, Client, Issued } from '../../support/client.js';
import { openInbox } from '../../support/inbox.js';
import { times } from '../../support/otp.js';
import { signUpAt } from '../../support/sign-up.js';

const inbox = openInbox(t);
const service = await startApp(t, { ...inbox.settings, LOCKOUT_MINUTES: '10' });
const { mysql, keyring } = service.app.needs;
const NEW = 'quite another password';

interface Owner {
  id: string;
  email: string;
  password: string;
  client: Client;
  issued: Issued;
  change: (currentPassword: unknown, newPassword: unknown) => Promise<Answer>;
}

async function signedIn(wanted: NewAccount = {}): Promise<Owner> {
  const account = await service.account(wanted);
  const client = service.client();
  const issued = (await client.login(account.email, account.password)).body as unknown as Issued;
  const change = (currentPassword: unknown, newPassword: unknown) =>
    client.request('POST', '/api/auth/password/change', { headers: { authorization: `Bearer ${issued.accessToken}` }, body: { currentPassword, newPassword } });
  return { ...account, client, issued, change };
}

const login = (email: string, password: string, ip = '203.0.113.9') => service.client({ ip }).login(email, password);

t.test('the current password sets a new one, ends the other sessions and keeps this one', async (t) => {
  const owner = await signedIn({ phone: '+4930123456' });
  const other = (await owner.client.login(owner.email, owner.password)).body as unknown as Issued;
  t.match(await owner.change(owner.password, NEW), { status: 204, text: '' });
  t.equal((await owner.client.profile(owner.issued.accessToken)).status, 200);
  t.equal((await owner.client.refresh(owner.issued.refreshToken)).status, 200);
  t.equal((await owner.client.profile(other.accessToken)).status, 401);
  t.match((await owner.client.refresh(other.refreshToken)).body, { code: 'REFRESH_SESSION_REVOKED' });
  t.equal((await login(owner.email, owner.password)).status, 401);
  await pause(40);
  t.equal((await login(owner.email, NEW)).status, 200);
  const [event] = await mysql.rows<{ message: string }>("SELECT message FROM event_outbox WHERE user_id = ? AND type = 'identity.user.password_changed'", [owner.id]);
  t.match(JSON.parse(event!.message), { userId: owner.id, email: owner.email, by: 'change' });
  t.equal((await mysql.rows("SELECT id FROM audit_log WHERE user_id = ? AND action = 'password.changed' AND status = 'success'", [owner.id])).length, 1);
  await inbox.nth(owner.email, 'password_changed');
  t.equal((await inbox.nth('+4930123456', 'password_changed')).channel, 'WHATSAPP');
});

t.test('reset tokens end with it, verification tokens do not', async (t) => {
  const owner = await signedIn({ verified: false });
  const { resetToken, resend, token, reset, verify } = signUpAt(service, inbox);
  const resetting = await resetToken(owner.email);
  await resend(owner.email);
  const verification = await token(owner.email, 'verify');
  await owner.change(owner.password, NEW);
  t.match((await reset(resetting, 'a third password of mine')).body, { code: 'TOKEN_INVALID' });
  t.equal((await verify(verification)).status, 204);
});

t.test('wrong guesses are held, counted and lock like those of a login', async (t) => {
  const owner = await signedIn();
  const started = performance.now();
  for (let i = 0; i < 5; i += 1) t.match((await owner.change(`${WRONG} ${i}`, NEW)).body, { code: 'INVALID_CREDENTIALS' });
  t.ok(performance.now() - started > 20 + 40 + 80 + 80, 'the delays of four failures');
  t.match(await owner.change(owner.password, NEW), { status: 429, body: { code: 'ACCOUNT_LOCKED' } }, 'the right one, too');
  t.match((await login(owner.email, owner.password)).body, { code: 'ACCOUNT_LOCKED' }, 'and a login');
  t.equal((await owner.client.profile(owner.issued.accessToken)).status, 200, 'the session lives');
  const [{ n }] = (await mysql.rows<{ n: number }>("SELECT COUNT(*) AS n FROM audit_log WHERE user_id = ? AND action = 'password.changed' AND status = 'failure'", [owner.id])) as [{ n: number }];
  t.equal(n, 5);
});

t.test('of 60 guesses at once no more than the threshold are verified', async (t) => {
  const owner = await signedIn();
  const counts = tally(await times(60, (i) => owner.change(`${WRONG} ${i}`, NEW)));
  // How many come in before the first has failed is the machine's business; the others find its delay.
  let verified = counts['INVALID_CREDENTIALS']!;
  for (let code = ''; code !== 'ACCOUNT_LOCKED'; await pause(10)) {
    code = codeOf(await owner.change(WRONG, NEW));
    if (code === 'INVALID_CREDENTIALS') verified += 1;
  }
  t.equal(verified, 5, JSON.stringify(counts));
  t.match((await owner.change(owner.password, NEW)).body, { code: 'ACCOUNT_LOCKED' });
});

t.test('with a second factor a right password clears nothing: codes cannot be guessed without end', async (t) => {
  const account = await service.account();
  const client = service.client();
  const issued = (await client.login(account.email, account.password)).body as unknown as Issued;
  await addTotp({ mysql, keyring }, account.id);
  const change = (currentPassword: string) => client.request('POST', '/api/auth/password/change', { headers: { authorization: `Bearer ${issued.accessToken}` }, body: { currentPassword, newPassword: account.password } });
  for (let i = 0; i < 4; i += 1) t.match((await change(WRONG)).body, { code: 'INVALID_CREDENTIALS' });
  t.equal((await change(account.password)).status, 204);
  t.match((await change(WRONG)).body, { code: 'INVALID_CREDENTIALS' });
  t.match((await change(account.password)).body, { code: 'ACCOUNT_LOCKED' });
});

t.test('of two changes at once one wins, and the password is the winner’s', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const owner = await signedIn();
    const wanted = ['the first of two passwords', 'the second of two passwords'];
    const answers = await Promise.all(wanted.map((password) => owner.change(owner.password, password)));
    t.same(answers.map(codeOf).sort(), ['INVALID_CREDENTIALS', 'OK'], answers.map(codeOf).join());
    await pause(40);
    t.equal((await login(owner.email, wanted[answers.findIndex(({ status }) => status === 204)]!, `203.0.113.${round + 10}`)).status, 200);
  }
});

t.test('an account that is disabled meanwhile keeps its password', async (t) => {
  const owner = await signedIn();
  const { changing } = await mysql.transaction(async (tx) => {
    await tx.run("UPDATE users SET status = 'disabled' WHERE id = ?", [owner.id]);
    const answer = owner.change(owner.password, NEW);
    await pause(200);
    return { changing: answer };
  });
  t.match((await changing).body, { code: 'UNAUTHENTICATED' });
  t.match((await login(owner.email, owner.password)).body, { code: 'ACCOUNT_INACTIVE' });
});

t.test('weak passwords are refused once the current one is right and change nothing, malformed ones at once', async (t) => {
  const owner = await signedIn();
  for (const weak of ['password1', owner.email.toUpperCase()]) t.match(await owner.change(owner.password, weak), { status: 400, body: { code: 'PASSWORD_TOO_WEAK', errors: [{ path: '/newPassword' }] } });
  t.equal((await owner.change(WRONG, 'password1')).status, 401, 'who is not the owner learns nothing of the rules');
  for (const bad of ['seven c', 'x'.repeat(257), 17, null, undefined]) t.match(await owner.change(WRONG, bad), { status: 400, body: { code: 'INVALID_REQUEST' } });
  for (const bad of ['', 17, null, undefined]) t.match(await owner.change(bad, NEW), { status: 400, body: { code: 'INVALID_REQUEST' } });
  t.equal((await owner.change(owner.password, NEW)).status, 204);
});

t.test('an account without a password has none to change', async (t) => {
  const owner = await signedIn();
  await mysql.run('UPDATE users SET password_hash = NULL WHERE id = ?', [owner.id]);
  t.match((await owner.change(owner.password, NEW)).body, { code: 'INVALID_CREDENTIALS' });
});

t.test('nobody changes a password without being signed in, and a cookie needs its XSRF value', async (t) => {
  const { email, password } = await service.account();
  const body = { currentPassword: password, newPassword: NEW };
  const browser = service.client();
  t.match((await browser.request('POST', '/api/auth/password/change', { body })).body, { code: 'UNAUTHENTICATED' });
  await browser.login(email, password, 'cookie');
  const cookie = { cookie: browser.cookieHeader() };
  t.match((await browser.request('POST', '/api/auth/password/change', { body, headers: cookie })).body, { code: 'CSRF_FAILED' });
  t.equal((await browser.request('POST', '/api/auth/password/change', { body, headers: { ...cookie, 'x-xsrf-token': browser.jar.get('XSRF-TOKEN')! } })).status, 204);
});
