import t from 'tap';
import { codeOf, counted, pause, strangers, tally, WRONG } from '../../support/attempts.js';
import { addRecoveryCodes, addTotp } from '../../support/accounts.js';
import { startApp } from '../../support/app.js';
import type { Answer, Client } from '../../support/client.js';
import { figure } from '../../support/figures.js';

const { app, client, account } = await startApp(t, { LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '0.01,0.02,0.03' });
const { mysql, clock } = app.needs;
const stranger = strangers(client);
const STEP = 30_000;

/** An account with an authenticator app and two recovery codes. */
async function secured() {
  const { id, email, password } = await account();
  const totp = await addTotp(app.needs, id);
  await addRecoveryCodes(app.needs, id, ['aaaa-1111', 'bbbb-2222']);
  // By the service's clock, which is the database's.
  return { id, email, password, code: (steps = 0) => totp(clock.now() + steps * STEP) };
}

async function challenge(from: Client, email: string, password: string): Promise<string> {
  return (await from.login(email, password)).body['mfaToken'] as string;
}

const verify = (from: Client, mfaToken: unknown, method: unknown, code: unknown, mode = 'json'): Promise<Answer> =>
  from.request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method, code }, headers: { 'x-token-delivery': mode } });

t.test('with a second factor the password earns a challenge in both modes, and no cookie, token or session', async (t) => {
  const { id, email, password } = await secured();
  for (const mode of ['json', 'cookie'] as const) {
    const answer = await client().login(email, password, mode);
    t.equal(answer.status, 200);
    t.same(Object.keys(answer.body), ['mfaRequired', 'mfaToken', 'methods', 'expiresIn']);
    t.match(answer.body, { mfaRequired: true, methods: ['totp', 'recovery_code'], expiresIn: 300 });
    t.same(answer.setCookies, []);
  }
  const [row] = await mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM sessions WHERE user_id = ?', [id]);
  t.equal(Number(row!.n), 0);
});

t.test('a right code opens a session in either mode and is on record in amr', async (t) => {
  const { email, password, code } = await secured();
  const byTotp = await verify(client(), await challenge(client(), email, password), 'totp', code());
  t.equal(byTotp.status, 200);
  t.same(amrOf(byTotp.body['accessToken'] as string), ['pwd', 'otp']);
  const from = client();
  const byRecovery = await verify(from, await challenge(from, email, password), 'recovery_code', ' AAAA 1111', 'cookie');
  t.equal(byRecovery.text, '{"ok":true}');
  t.equal(byRecovery.setCookies.length, 4);
  t.match(await from.profile(), { status: 200, body: { email, mfaEnabled: true } });
});

const amrOf = (token: string): unknown => (JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { amr: unknown }).amr;

t.test('a code counts once, no older one counts after it, and clocks may be one step off', async (t) => {
  const { email, password, code } = await secured();
  // Far enough from the next step that none of the codes below grows older meanwhile.
  const left = STEP - (clock.now() % STEP);
  if (left < 5_000) await pause(left);
  const next = async (method: string, value: string): Promise<string> => codeOf(await verify(client(), await challenge(client(), email, password), method, value));
  t.equal(await next('totp', code(-2)), 'MFA_INVALID', 'too old');
  t.equal(await next('totp', code(-1)), 'OK');
  t.equal(await next('totp', code(-1)), 'MFA_INVALID', 'used');
  t.equal(await next('totp', code(1)), 'OK');
  t.equal(await next('totp', code(0)), 'MFA_INVALID', 'older than one that was used');
  t.equal(await next('recovery_code', 'bbbb2222'), 'OK');
  t.equal(await next('recovery_code', 'bbbb-2222'), 'MFA_INVALID', 'used');
  t.equal(await next('recovery_code', 'aaaa-1111'), 'OK', 'the other one still counts');
});

t.test('a token confirms one login, also when many try at once', async (t) => {
  const { id, email, password, code } = await secured();
  const token = await challenge(client(), email, password);
  const right = code();
  const answers = await Promise.all(Array.from({ length: 12 }, () => verify(stranger(), token, 'totp', right)));
  t.same(tally(answers), { OK: 1, MFA_TOKEN_INVALID: 11 });
  t.equal(codeOf(await verify(client(), token, 'recovery_code', 'aaaa-1111')), 'MFA_TOKEN_INVALID');
  const [row] = await mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM sessions WHERE user_id = ?', [id]);
  t.equal(Number(row!.n), 1);
});

t.test('the session has the name that the device got with the password', async (t) => {
  const { id, email, password, code } = await secured();
  const token = (await client().request('POST', '/api/auth/login', { body: { email, password, deviceName: 'Ann’s phone' } })).body['mfaToken'];
  t.equal(codeOf(await verify(client(), token, 'totp', code())), 'OK');
  t.same(await mysql.rows('SELECT device FROM sessions WHERE user_id = ?', [id]), [{ device: 'Ann’s phone' }]);
});

t.test('one recovery code used in two logins at once counts for one', async (t) => {
  const { email, password } = await secured();
  const tokens = await Promise.all([challenge(client(), email, password), challenge(client(), email, password)]);
  const answers = await Promise.all(tokens.map((token) => verify(stranger(), token, 'recovery_code', 'aaaa-1111')));
  t.same(tally(answers), { OK: 1, MFA_INVALID: 1 });
});

t.test('a wrong code leaves the token good for another try', async (t) => {
  const { email, password, code } = await secured();
  const token = await challenge(client(), email, password);
  for (const wrong of ['000000', '12345', 'abcdef', '１２３４５６']) t.match(await verify(client(), token, 'totp', wrong), { status: 401, body: { code: 'MFA_INVALID' } });
  t.equal(codeOf(await verify(client(), token, 'totp', code())), 'OK');
});

t.test('an unknown, expired or malformed token confirms nothing', async (t) => {
  const { email, password, code } = await secured();
  for (const token of ['x', 'A'.repeat(43)]) t.match(await verify(client(), token, 'totp', code()), { status: 401, body: { code: 'MFA_TOKEN_INVALID' } });
  const token = await challenge(client(), email, password);
  await mysql.run('UPDATE mfa_tokens SET expires_at = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND');
  t.equal(codeOf(await verify(client(), token, 'totp', code())), 'MFA_TOKEN_INVALID');
  for (const [mfaToken, method, value] of [[undefined, 'totp', '1'], [1, 'totp', '1'], ['x', 'sms', '1'], ['x', 'totp', 1], ['x', 'totp', ''], ['x'.repeat(129), 'totp', '1']]) {
    t.match(await verify(client(), mfaToken, method, value), { status: 400, body: { code: 'INVALID_REQUEST' } });
  }
});

t.test('an account that ended after its password was checked opens no session', async (t) => {
  const cases: [string, string][] = [
    ["status = 'disabled'", 'ACCOUNT_INACTIVE'],
    ['deleted_at = UTC_TIMESTAMP(3)', 'ACCOUNT_DELETED'],
  ];
  for (const [change, expected] of cases) {
    const { id, email, password, code } = await secured();
    const token = await challenge(client(), email, password);
    await mysql.run(`UPDATE users SET ${change} WHERE id = ?`, [id]);
    t.equal(codeOf(await verify(client(), token, 'totp', code())), expected);
  }
});

t.test('failures of the second factor lock the password too, and the reverse', async (t) => {
  const byCode = await secured();
  const token = await challenge(client(), byCode.email, byCode.password);
  for (let i = 0; i < 5; i += 1) t.equal(codeOf(await verify(stranger(), token, 'totp', '000000')), 'MFA_INVALID');
  const locked = [codeOf(await verify(stranger(), token, 'totp', byCode.code())), codeOf(await stranger().login(byCode.email, byCode.password))];
  t.same(locked, ['ACCOUNT_LOCKED', 'ACCOUNT_LOCKED']);

  const byPassword = await secured();
  const pending = await challenge(client(), byPassword.email, byPassword.password);
  for (let i = 0; i < 5; i += 1) await stranger().login(byPassword.email, WRONG);
  locked.push(codeOf(await verify(stranger(), pending, 'totp', byPassword.code())));
  t.equal(locked[2], 'ACCOUNT_LOCKED');
  const open = locked.filter((code) => code !== 'ACCOUNT_LOCKED').length;
  figure(t, 'T04', { did: 'locked by codes, then the password; locked by passwords, then the code', figure: `${open} of ${locked.length} right attempts let in`, ok: open === 0 });
  await pause(620);
  t.equal(codeOf(await verify(stranger(), pending, 'totp', byPassword.code())), 'OK', 'the token outlives the lock');
});

t.test('a right password with a second factor due clears no counts', async (t) => {
  const { email, password, code } = await secured();
  for (let i = 0; i < 4; i += 1) {
    await stranger().login(email, WRONG);
    t.ok(await challenge(stranger(), email, password));
  }
  t.equal(codeOf(await verify(stranger(), await challenge(stranger(), email, password), 'totp', '000000')), 'MFA_INVALID', 'the fifth failure');
  t.equal(codeOf(await stranger().login(email, password)), 'ACCOUNT_LOCKED');
  await pause(620);
  t.equal(codeOf(await verify(stranger(), await challenge(stranger(), email, password), 'totp', code())), 'OK');
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await stranger().login(email, WRONG)), 'INVALID_CREDENTIALS', 'the whole login cleared them');
});

t.test('guesses of a code at once are verified no more often than lock', async (t) => {
  const { email, password } = await secured();
  const token = await challenge(client(), email, password);
  const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => verify(stranger(), token, 'totp', String(100_000 + i))));
  t.equal(tally(answers)['MFA_INVALID'], 5);
  t.notOk(tally(answers)['OK']);
});

t.test('the failed reply is held as that of a password', async (t) => {
  const slow = await startApp(t, { LOGIN_DELAYS_S: '1' });
  const { id, email, password } = await slow.account();
  await addTotp(slow.app.needs, id);
  const token = await challenge(slow.client(), email, password);
  const started = performance.now();
  const failing = verify(slow.client(), token, 'totp', '000000');
  await counted(slow.app.needs, email, 1);
  t.equal(codeOf(await slow.client().login(email, password)), 'LOGIN_THROTTLED');
  t.equal(codeOf(await verify(slow.client(), token, 'totp', '000000')), 'LOGIN_THROTTLED');
  await failing;
  t.ok(performance.now() - started >= 1000);
});

t.test('fifty logins at once with one code, of an app or of recovery: one success', async (t) => {
  // So many wrong codes lock an account at once; here the code alone must decide.
  const open = await startApp(t, { LOGIN_DELAYS_S: '0', LOCKOUT_THRESHOLD: '100' });
  for (const method of ['totp', 'recovery_code']) {
    for (const shared of [false, true]) {
      const { id, email, password } = await open.account();
      const totp = await addTotp(open.app.needs, id);
      await addRecoveryCodes(open.app.needs, id, ['aaaa-1111', 'bbbb-2222']);
      const one = await challenge(open.client(), email, password);
      const tokens = await Promise.all(Array.from({ length: 50 }, () => (shared ? Promise.resolve(one) : challenge(open.client(), email, password))));
      const code = method === 'totp' ? totp(open.app.needs.clock.now()) : 'aaaa-1111';
      const answers = await Promise.all(tokens.map((token) => verify(open.client(), token, method, code)));
      t.same(tally(answers), { OK: 1, [shared ? 'MFA_TOKEN_INVALID' : 'MFA_INVALID']: 49 }, `${method}, ${shared ? 'one token' : 'fifty tokens'}`);
      const [row] = await open.app.needs.mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM sessions WHERE user_id = ?', [id]);
      t.equal(Number(row!.n), 1);
    }
  }
});

t.test('fifty logins at once with one code lock the account after the one that counts', async (t) => {
  for (const method of ['totp', 'recovery_code']) {
    const { email, password, code } = await secured();
    const tokens = await Promise.all(Array.from({ length: 50 }, () => challenge(client(), email, password)));
    const right = method === 'totp' ? code() : 'aaaa-1111';
    const counts = tally(await Promise.all(tokens.map((token) => verify(stranger(), token, method, right))));
    t.same(counts, { OK: 1, MFA_INVALID: 5, ACCOUNT_LOCKED: 44 });
  }
});
