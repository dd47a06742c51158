import t, { type Test } from 'tap';
import { addRecoveryCodes, addTotp } from '../../support/accounts.js';
import { codeOf, lockOut, strangers } from '../../support/attempts.js';
import type { Answer } from '../../support/client.js';
import { challenge, verify } from '../../support/factors.js';
import { figure } from '../../support/figures.js';
import { openInbox } from '../../support/inbox.js';
import { fragmentOf, openBrowser, startOAuthApp } from '../../support/oidc.js';
import { signUpAt } from '../../support/sign-up.js';

const inbox = openInbox(t);
const service = await startOAuthApp(t, { ...inbox.settings, LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '5' });
const { needs } = service.app;
const stranger = strangers(service.client);
const signUp = signUpAt(service, inbox);

let persons = 0;
/** An owner who is known to the provider, has both second factors, and whose login waits for one. */
async function owner() {
  const account = await service.account();
  const person = `person-${(persons += 1)}`;
  service.oidc.people[person] = { email: account.email, email_verified: true };
  await service.signIn(person);
  const app = await addTotp(needs, account.id);
  await addRecoveryCodes(needs, account.id, ['aaaa-1111']);
  return { ...account, person, app, pending: await challenge(stranger(), account) };
}
type Owner = Awaited<ReturnType<typeof owner>>;

/** What a reply, or the fragment of a provider's, gives that would open a session or go on to one. */
const gives = (text: string, cookies: string[] = []): boolean => /(access|refresh|mfa)(_t|T)oken/.test(text) || cookies.some((cookie) => !/Max-Age=0\b/.test(cookie));
const given = ({ text, setCookies }: Answer): boolean => gives(text, setCookies);

let browsers = 0;
/** A sign-in from where nobody has signed in before: familiar sources are locked by failures of their own alone. */
async function atProvider(person: string): Promise<Record<string, string>> {
  const browser = openBrowser(person, `192.0.2.${(browsers += 1)}`);
  return fragmentOf(await browser.visit(await browser.toCallback(service.start())));
}

/** Every way to tokens, each tried with what is right for it; gives whether there were any. */
const ways: Record<string, (owner: Owner) => Promise<boolean>> = {
  'the password, json': async ({ email, password }) => given(await stranger().login(email, password)),
  'the password, cookies': async ({ email, password }) => given(await stranger().login(email, password, 'cookie')),
  'a code of the app': async ({ pending, app }) => given(await verify(stranger(), pending, 'totp', app())),
  'a recovery code': async ({ pending }) => given(await verify(stranger(), pending, 'recovery_code', 'aaaa-1111')),
  'the provider': async ({ person }) => gives(JSON.stringify(await atProvider(person))),
  'signing up again': async ({ email, password }) => given(await signUp.register(email, password)),
  'a proof of the address': async ({ email }) => given(await signUp.resend(email)),
  'a request for a reset': async ({ email }) => given(await signUp.forgot(email)),
  'a restore': async ({ email }) => given(await stranger().request('POST', '/api/auth/account/restore', { body: { email, otp: '00000000' } })),
};

/** How an account comes to be locked. */
const locks: Record<string, (owner: Owner) => Promise<unknown>> = {
  'passwords': ({ email }) => lockOut(stranger(), email),
  'codes': async ({ pending }) => {
    for (let i = 0; i < 5; i += 1) await verify(stranger(), pending, 'totp', '000000');
  },
  'an operator': ({ id }) => needs.mysql.run('UPDATE users SET locked_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE id = ?', [id]),
};

/** The ways that gave something. */
async function tryAll(by: Owner): Promise<string[]> {
  const open: string[] = [];
  for (const [name, way] of Object.entries(ways)) if (await way(by)) open.push(name);
  return open;
}

t.test('the ways are ways: while nothing is locked those that should give tokens do', async (t) => {
  const open = await tryAll(await owner());
  t.same(open, ['the password, json', 'the password, cookies', 'a code of the app', 'the provider'], 'a confirmed login is over for another code');
});

t.test('whatever locked the account, no way gives anything while it is locked', async (t) => {
  let tokens = 0;
  for (const [name, lock] of Object.entries(locks)) {
    const one = await owner();
    await lock(one);
    t.equal(codeOf(await stranger().login(one.email, one.password)), 'ACCOUNT_LOCKED', name);
    const before = await sessionsOf(one);
    const open = await tryAll(one);
    t.same(open, [], name);
    t.equal(await sessionsOf(one), before, 'no session was made');
    tokens += open.length;
  }
  figure(t, 'T04', { did: `locked by ${Object.keys(locks).join(', ')}, then each of ${Object.keys(ways).length} ways in with what is right for it`, figure: `${tokens} gave tokens`, ok: tokens === 0 });
});

const sessionsOf = async ({ id }: Owner): Promise<number> => (await needs.mysql.rows('SELECT id FROM sessions WHERE user_id = ?', [id])).length;

t.test('a reset by mail lifts the lock, as it proves the owner, but gives no token and skips no second factor', async (t: Test) => {
  const one = await owner();
  await lockOut(stranger(), one.email);
  const token = await signUp.resetToken(one.email);
  t.equal(codeOf(await stranger().login(one.email, one.password)), 'ACCOUNT_LOCKED', 'asking for one lifts nothing');
  t.not((await signUp.reset(`${token}x`, 'another password of mine')).status, 204);
  t.equal(codeOf(await stranger().login(one.email, one.password)), 'ACCOUNT_LOCKED', 'nor does a wrong token');
  const reset = await signUp.reset(token, 'another password of mine');
  t.equal(reset.status, 204);
  t.notOk(given(reset));
  t.equal(codeOf(await verify(stranger(), one.pending, 'totp', one.app())), 'MFA_TOKEN_INVALID', 'what the old password began is over');
  const login = await stranger().login(one.email, 'another password of mine');
  t.match(login.body, { mfaRequired: true, mfaToken: String });
  t.equal(login.body['accessToken'], undefined);
  figure(t, 'T04', { did: 'locked, then a reset by mail and a login with the new password', figure: 'no token from the reset; the login asks for the second factor', ok: !given(reset) && login.body['mfaRequired'] === true });
});
