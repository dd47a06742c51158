import t from 'tap';
import { startApp } from '../support/app.js';
import { pause, WRONG } from '../support/attempts.js';
import { openInbox } from '../support/inbox.js';
import { signUpAt } from '../support/sign-up.js';

const PASSWORD = 'a password of my own';
const inbox = openInbox(t);
// One thread, which nobody waits for, and hashes that take a while.
const service = await startApp(t, { ...inbox.settings, HASH_THREADS: '1', HASH_QUEUE_MS: '1', ARGON2_MEMORY_KIB: '65536', ARGON2_PASSES: '8', LOGIN_DELAYS_S: '1' });
const { hashing } = service.app.needs;
const { register, reset, resetToken } = signUpAt(service, inbox);

const { email, password } = await service.account();
const client = service.client();
const headers = { authorization: `Bearer ${(await client.login(email, password)).body['accessToken'] as string}` };
const change = (currentPassword: string) => client.request('POST', '/api/auth/password/change', { headers, body: { currentPassword, newPassword: PASSWORD } });

t.test('while the hashing threads are full new passwords are refused at once, and no token is used up', async (t) => {
  const token = await resetToken(email);
  const busy = hashing.hash('whatever', { network: 'another' });
  for (const send of [() => register('new@example.com', PASSWORD), () => register(email, PASSWORD), () => reset(token, PASSWORD), () => change(password)]) {
    t.match(await send(), { status: 503, body: { code: 'OVERLOADED' } });
  }
  await busy;
  t.equal((await reset(token, password)).status, 204);
});

t.test('a change within the delay that a wrong guess earned is refused unheard', async (t) => {
  headers.authorization = `Bearer ${(await client.login(email, password)).body['accessToken'] as string}`;
  const held = change(WRONG);
  while (hashing.state().running === 0) await pause(1);
  while (hashing.state().running > 0) await pause(1);
  await pause(200);
  t.match(await change(password), { status: 429, body: { code: 'LOGIN_THROTTLED' } });
  t.match((await held).body, { code: 'INVALID_CREDENTIALS' });
});
