import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { startApp } from '../support/app.js';
import type { Issued } from '../support/client.js';
import { startMailServer, type Received } from '../support/mail.js';

const PASSWORD = 'a password of my own';
const BREACHED = 'a password that leaked';

/** A range service that knows one password. */
const digest = createHash('sha1').update(BREACHED).digest('hex').toUpperCase();
const range = createServer((request, response) => response.end(request.url === `/${digest.slice(0, 5)}` ? `${digest.slice(5)}:1\r\n` : '')).listen(0, '127.0.0.1');
t.teardown(() => {
  range.close();
  range.closeAllConnections();
});

const mail = await startMailServer(t);
const service = await startApp(t, {
  SMTP_URL: mail.url,
  LINK_BASE_URL: 'https://app.example.com/account/',
  BREACH_RANGE_URL: `http://127.0.0.1:${(range.address() as AddressInfo).port}`,
});
const client = service.client();
const post = (path: string, body: object, headers = {}) => client.request('POST', `/api/auth/${path}`, { body, headers });

/** The token in the link of a mail. */
function tokenIn({ text }: Received, page: string): string {
  const link = text.split('\n').map((line) => line.trim()).find((line) => line.startsWith('https://'))!;
  const url = new URL(link);
  t.equal(`${url.origin}${url.pathname}${url.search}`, `https://app.example.com/account/${page}`);
  return new URLSearchParams(url.hash.slice(1)).get('token')!;
}

t.test('somebody signs up, proves the address, loses the password, sets a new one and changes it, all by real mail', async (t) => {
  const email = 'ann@example.com';
  t.match(await post('register', { email, password: BREACHED }), { status: 400, body: { code: 'PASSWORD_TOO_WEAK' } });
  t.equal((await post('register', { email, password: PASSWORD, givenName: 'Ann' })).status, 202);
  const [first] = await mail.received(1);
  t.same(first!.to, [email]);
  t.equal((await post('email/verify', { token: tokenIn(first!, 'verify-email') })).status, 204);
  const { accessToken } = (await client.login(email, PASSWORD)).body as unknown as Issued;
  t.match((await client.profile(accessToken)).body, { email, emailVerified: true, profiles: [{ provider: 'local', givenName: 'Ann' }] });

  t.equal((await post('password/forgot', { email })).status, 204);
  const second = (await mail.received(2))[1]!;
  t.match(second.text, /^Hello Ann,/, 'a proven address is called by name');
  const token = tokenIn(second, 'reset-password');
  t.match(await post('password/reset', { token, password: BREACHED }), { status: 400, body: { code: 'PASSWORD_TOO_WEAK' } });
  t.equal((await post('password/reset', { token, password: 'a second password of mine' })).status, 204);
  t.equal((await client.profile(accessToken)).status, 401);
  t.ok((await mail.received(3))[2]!.headers.includes('Subject: Your password was changed'));

  const again = (await client.login(email, 'a second password of mine')).body as unknown as Issued;
  const bearer = { authorization: `Bearer ${again.accessToken}` };
  const change = (newPassword: string) => post('password/change', { currentPassword: 'a second password of mine', newPassword }, bearer);
  t.match(await change(BREACHED), { status: 400, body: { code: 'PASSWORD_TOO_WEAK' } });
  t.equal((await change('a third password of mine')).status, 204);
  await mail.received(4);
  t.equal((await client.profile(again.accessToken)).status, 200);
  t.equal((await client.login(email, 'a third password of mine')).status, 200);
});

t.test('a sign-up for a known address reaches its owner by real mail', async (t) => {
  const before = mail.mails.length;
  await service.account({ email: 'known@example.com' });
  await post('register', { email: 'known@example.com', password: PASSWORD });
  const sent = (await mail.received(before + 1)).at(-1)!;
  t.same(sent.to, ['known@example.com']);
  t.ok(sent.headers.includes('Subject: You have an account already'));
});
