// Mostly waits.

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startApp } from '../../support/app.js';
import { tally } from '../../support/attempts.js';
import type { Answer } from '../../support/client.js';
import { openInbox } from '../../support/inbox.js';
import { times } from '../../support/otp.js';
import { QUIET_MS } from '../../support/sign-up.js';

const inbox = openInbox(t);
// Empty: the defaults.
const NAMES = ['REGISTER', 'REGISTER_ADDRESS', 'EMAIL_VERIFY', 'EMAIL_RESEND', 'EMAIL_RESEND_ADDRESS', 'PASSWORD_FORGOT', 'PASSWORD_FORGOT_ADDRESS', 'PASSWORD_RESET', 'PASSWORD_CHANGE'];
const service = await startApp(t, { ...inbox.settings, ...Object.fromEntries(NAMES.map((name) => [`LIMIT_${name}`, ''])) });
const PASSWORD = 'a password of my own';

let hosts = 0;
const post = (path: string, body: object, ip = `198.18.0.${(hosts += 1)}`): Promise<Answer> => service.client({ ip }).request('POST', `/api/auth/${path}`, { body });

t.test('one network gets ten sign-ups, resends, resets asked and tried, and twenty verifications in five minutes', async (t) => {
  const calls = {
    'register': [10, (i: number) => ({ email: `one${i}@example.com`, password: PASSWORD })],
    'email/resend': [10, (i: number) => ({ email: `one${i}@example.com` })],
    'password/forgot': [10, (i: number) => ({ email: `one${i}@example.com` })],
    'password/reset': [10, () => ({ token: 'x', password: PASSWORD })],
    'email/verify': [20, () => ({ token: 'x' })],
  } as const;
  for (const [path, [most, body]] of Object.entries(calls)) {
    const counts = tally(await times(most + 5, (i) => post(path, body(i), '198.51.100.1')));
    t.equal(counts['RATE_LIMITED'], 5, `${path}: ${JSON.stringify(counts)}`);
  }
  t.not((await post('register', { email: 'other@example.com', password: PASSWORD })).status, 429, 'another network has its own');
});

t.test('from however many networks, an address is written to three, five and three times; nobody is told', async (t) => {
  const { email: known } = await service.account({ email: 'known@example.com' });
  const { email: unproven } = await service.account({ email: 'unproven@example.com', verified: false });
  const answers = {
    register: await times(8, () => post('register', { email: known, password: PASSWORD })),
    resend: await times(8, () => post('email/resend', { email: unproven })),
    forgot: await times(8, (i) => post('password/forgot', { email: i % 2 === 0 ? known : known.toUpperCase() })),
  };
  t.same(answers.register.map(({ status, text }) => `${status} ${text}`), Array(8).fill('202 {"ok":true}'));
  for (const { status, text } of [...answers.resend, ...answers.forgot]) t.equal(`${status} ${text}`, '204 ');
  await inbox.nth(known, 'account_exists', 3);
  await inbox.nth(unproven, 'email_verification_requested', 5);
  await inbox.nth(known, 'password_reset_requested', 3);
  await sleep(QUIET_MS);
  t.equal(inbox.to(known).length, 3 + 3);
  t.equal(inbox.to(unproven).length, 5);
});

t.test('an account gets ten changes of its password in five minutes', async (t) => {
  const { email, password } = await service.account();
  const client = service.client();
  const headers = { authorization: `Bearer ${(await client.login(email, password)).body['accessToken'] as string}` };
  const counts = tally(await times(12, () => client.request('POST', '/api/auth/password/change', { headers, body: { currentPassword: password, newPassword: 'password1' } })));
  t.same(counts, { PASSWORD_TOO_WEAK: 10, RATE_LIMITED: 2 });
});
