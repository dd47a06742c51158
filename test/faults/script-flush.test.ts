import { Redis } from 'ioredis';
import t from 'tap';
import { tally } from '../support/attempts.js';
import { startApp } from '../support/app.js';
import type { Answer } from '../support/client.js';
import { figure } from '../support/figures.js';

t.test('scripts that Redis forgets all the time cost no request', async (t) => {
  const { client, account, redis } = await startApp(t, { LIMIT_REFRESH_SESSION: '10000/300', LIMIT_REFRESH_IP: '10000/300' });
  const users = await Promise.all(Array.from({ length: 8 }, () => account()));
  const flusher = new Redis(redis.url);
  let flushes = 0;
  const timer = setInterval(() => void flusher.script('FLUSH').then(() => (flushes += 1)), 10);
  t.teardown(() => {
    clearInterval(timer);
    flusher.disconnect();
  });
  const answers: Answer[] = [];
  for (let round = 0; round < 25; round += 1) {
    const logins = await Promise.all(users.map(({ email, password }) => client().login(email, password)));
    answers.push(...logins, ...(await Promise.all(logins.map(({ body }) => client().refresh(body['refreshToken'])))));
  }
  t.ok(flushes > 20, `${flushes} flushes`);
  t.same(tally(answers), { OK: 400 });
  const errors = answers.filter(({ status }) => status !== 200).length;
  figure(t, 'T60', { did: `400 logins and refreshes during ${flushes} times SCRIPT FLUSH`, figure: `${errors} errors`, ok: errors === 0 && flushes > 20 });
});
