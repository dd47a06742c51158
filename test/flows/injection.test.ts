// Mostly waits.

import t from 'tap';
import { Redis } from 'ioredis';
import { startApp } from '../support/app.js';
import { figure } from '../support/figures.js';
import { exchange, request } from '../support/raw.js';

const CORPUS = [
  "' OR '1'='1",
  "' OR 1=1 -- ",
  '" OR ""="',
  "'; DROP TABLE users; -- ",
  "admin'/*",
  "' UNION SELECT password_hash FROM users -- ",
  "' AND SLEEP(3) -- ",
  "1; SELECT BENCHMARK(50000000, MD5('a'))",
  '\\',
  "\\'",
  '%27%20OR%201=1',
  '\u0000',
  '\r\nSET x y\r\n',
  '*1\r\n$8\r\nFLUSHALL\r\n',
  "\nredis.call('FLUSHALL')\n",
  'a}b{c@example.com',
  '{}{}',
  '}{user}@example.com',
  '${7*7}{{7*7}}',
  '<script>alert(1)</script>',
  '%0d%0aSet-Cookie: a=b',
  '$ne',
  '\u202e\u0301\ufeff',
  '😀'.repeat(40),
  'K@example.com',
];

t.test('hostile text in any field or header is data: no 500, no delay, no other rows', { timeout: 60_000 }, async (t) => {
  const { app, account, client, redis } = await startApp(t);
  const { email, password } = await account();
  const { accessToken, refreshToken } = (await client().login(email, password)).body as { accessToken: string; refreshToken: string };
  const users = await app.needs.mysql.rows('SELECT * FROM users');
  const post = (path: string, body: unknown) => () => client().request('POST', path, { body });
  const header = (name: string, value: string) => () => exchange(app.port, request('GET /api/auth/profile', [`${name}: ${value}`]));

  let [asked, broken, slowest] = [0, 0, 0];
  for (const text of CORPUS) {
    // A header holds bytes without line breaks; what else would be another header is tried elsewhere.
    const value = Buffer.from(text.replace(/[\r\n\0]/g, ''), 'utf8').toString('latin1');
    const tries: [string, () => Promise<{ status: number }>][] = [
      ['email', post('/api/auth/login', { email: text, password: 'x' })],
      // With a word before it: the same text as a name is stored on purpose, and no password may be found in a store.
      ['password', post('/api/auth/login', { email: `nobody-${Math.random()}@example.com`, password: `word ${text}` })],
      ['deviceName', post('/api/auth/login', { email, password, deviceName: text })],
      ['mfaToken', post('/api/auth/mfa/verify-login', { mfaToken: text, method: 'totp', code: text })],
      ['method', post('/api/auth/mfa/verify-login', { mfaToken: 'x', method: text, code: '123456' })],
      ['forgotten email', post('/api/auth/password/forgot', { email: text })],
      ['verification token', post('/api/auth/email/verify', { token: text })],
      ['reset token', post('/api/auth/password/reset', { token: text, password: 'a password of my own' })],
      ['refreshToken', post('/api/auth/refresh', { refreshToken: text })],
      ['jti', post('/api/auth/refresh', { refreshToken, jti: text })],
      ...['Authorization', 'Cookie', 'User-Agent', 'X-Forwarded-For', 'Forwarded', 'Origin', 'X-Token-Delivery', 'X-XSRF-Token', 'Accept-Language'].map((name): [string, () => Promise<{ status: number }>] => [name, header(name, value)]),
      ['a cookie', header('Cookie', `idp_at=${value}; idp_rt=${value}; XSRF-TOKEN=${value}`)],
      ['a bearer', header('Authorization', `Bearer ${value}`)],
      ['the query', () => exchange(app.port, request(`GET /api/auth/profile?format=${encodeURIComponent(text)}&__proto__=1`))],
      ['a login by cookie', () => client().login(text, `word ${text}`, 'cookie', { 'user-agent': value.replace(/[^\x20-\x7e]/g, '') })],
    ];
    for (const [field, attempt] of tries) {
      const started = performance.now();
      const { status } = await attempt();
      t.ok(status < 500, `${field}: ${JSON.stringify(text)} gives ${status}`);
      const ms = performance.now() - started;
      t.ok(ms < 1500, `${field}: ${JSON.stringify(text)} is no slower`);
      asked += 1;
      if (status >= 500) broken += 1;
      slowest = Math.max(slowest, ms);
    }
  }
  const same = (await app.needs.mysql.rows<Record<string, unknown>>('SELECT * FROM users')) as unknown[];
  t.equal(same.length, users.length);
  t.equal((await client().profile(accessToken)).status, 200);
  t.equal((await client().refresh(refreshToken)).status, 200, 'the token is still the newest');
  figure(t, 'T57', { did: `${CORPUS.length} hostile texts in ${asked} fields and headers`, figure: `${broken} × 5xx, slowest ${slowest.toFixed(0)} ms (SLEEP(3) among them)`, ok: broken === 0 && slowest < 1500 });

  const own = new Redis(redis.url);
  t.teardown(() => own.disconnect());
  // The log of events stays, whoever they are about: it is looked at elsewhere.
  const keys = (await own.keys('*')).filter((key) => !key.includes('idp:events'));
  t.ok(keys.length > 10);
  for (const key of keys) {
    t.match(key, /^idp:\{[\w-]+\}:[\w:-]+$/, 'a key holds nothing that was sent');
    // -2: it has expired meanwhile.
    t.not(await own.pttl(key), -1, `${key} expires`);
  }
});
