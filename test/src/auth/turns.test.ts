// Mostly waits.

import { hashSync as bcrypt } from '@node-rs/bcrypt';
import t from 'tap';
import { identityOf } from '../../../src/auth/identity.js';
import { KEYS } from '../../../src/store/redis.js';
import { strangers, tally, timed } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import { atMost } from '../../support/patience.js';

const own = await startApp(t);
const { app, client, account } = own;
const { mysql, redis } = app.needs;
const stranger = strangers(client);

t.test('logins of one account above the slots wait for their turn and all succeed', async (t) => {
  const { email, password } = await account();
  const answers = await Promise.all(Array.from({ length: 40 }, () => stranger().login(email, password)));
  t.same(tally(answers), { OK: 40 });
  t.equal(new Set(answers.map(({ body }) => body['refreshToken'])).size, 40, 'each has a session of its own');
});

t.test('an outdated hash is renewed by one of many logins at once and all succeed', async (t) => {
  const { email, password, id } = await account({ passwordHash: null });
  await mysql.run('UPDATE users SET password_hash = ? WHERE id = ?', [bcrypt(password, { cost: 4 }), id]);
  const answers = await Promise.all(Array.from({ length: 12 }, () => stranger().login(email, password)));
  t.same(tally(answers), { OK: 12 });
  const [row] = await mysql.rows<{ hash: string }>('SELECT password_hash AS hash FROM users WHERE id = ?', [id]);
  t.match(row!.hash, /^\$argon2id\$/);
});

/** Leaves tickets like those of a node that died: they fill the slots until they lapse. */
async function fillSlots(email: string, ms: number): Promise<void> {
  const held = KEYS.gateHeld(identityOf(app.needs.keyring, email), null);
  for (let i = 0; i < 5; i += 1) await redis.zadd(held, Date.now() + ms, `dead ${i}`);
}

t.test('who waits longer than 5 s for a slot is refused', async (t) => {
  const { email, password } = await account();
  await fillSlots(email, 20_000);
  const { answer, ms } = await timed(stranger().login(email, password));
  t.match(answer, { status: 429, body: { code: 'LOGIN_THROTTLED' } });
  t.ok(ms > 4900 && ms < atMost(5600), `waited ${Math.round(ms)} ms`);
});

t.test('a ticket whose node died lapses', async (t) => {
  const { email, password } = await account();
  const filled = Date.now();
  await fillSlots(email, 400);
  t.equal((await stranger().login(email, password)).status, 200);
  t.ok(Date.now() - filled >= 400, `waited ${Date.now() - filled} ms`);
});

t.test('without Redis no login is let in', async (t) => {
  const { email, password } = await account();
  await own.redis.stop();
  t.match(await stranger().login(email, password), { status: 503, body: { code: 'UNAVAILABLE', retryAfter: 1 } });
});
