import { Redis } from 'ioredis';
import t from 'tap';
import { loadConfig } from '../../src/config/load.js';
import { ApiError } from '../../src/errors.js';
import { createKeyring } from '../../src/keyring.js';
import { createLimits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import { testEnv } from '../support/app.js';
import { ownRedis } from '../support/stores.js';

const own = await ownRedis(t);
const env = testEnv('mysql://u:p@127.0.0.1:1/x', own.url);
const config = loadConfig({ ...env, LIMIT_LOGIN_IP: '2/60', LIMIT_REFRESH_IP: '3/60', LIMIT_REFRESH_SESSION: '2/60', LIMIT_EXPORT: '0' });
const redis = createRedis(own.url, createLog('silent'));
await redis.connect();
t.teardown(() => redis.disconnect());
const limits = createLimits(config, createKeyring(config.secretKey, null), loadScripts(redis));
const hit = (name: Parameters<typeof limits.hit>[0], counted: string): Promise<string> => limits.hit(name, counted).then(() => 'OK', (error: unknown) => (error as ApiError).code);
const hits = async (name: Parameters<typeof limits.hit>[0], counted: string, n: number): Promise<string[]> => {
  const codes: string[] = [];
  for (let i = 0; i < n; i += 1) codes.push(await hit(name, counted));
  return codes;
};

t.test('each limit counts by itself and by who is counted', async (t) => {
  t.same(await hits('login-ip', '192.0.2.1', 3), ['OK', 'OK', 'RATE_LIMITED']);
  t.equal(await hit('login-ip', '192.0.2.2'), 'OK');
  t.equal(await hit('refresh-ip', '192.0.2.1'), 'OK');
  const refused = await limits.hit('login-ip', '192.0.2.1').catch((error: unknown) => error as ApiError);
  t.ok(refused instanceof ApiError && refused.extras.retryAfter! > 55);
});

t.test('a limit of 0 is off', async (t) => t.same(new Set(await hits('export', 'u', 50)), new Set(['OK'])));

t.test('no key names an address or an id', async (t) => {
  const look = new Redis(own.url);
  for (const key of await look.keys('*')) t.match(key, /^idp:\{[\w-]+\}:limit:[\w-]+$/);
  for (const key of await look.keys('*192*')) t.fail(key);
  look.disconnect();
});

t.test('scripts that Redis forgot are sent again', async (t) => {
  const look = new Redis(own.url);
  for (let i = 0; i < 20; i += 1) {
    await look.script('FLUSH');
    t.equal(await hit('login-ip', `flushed ${i}`), 'OK');
  }
  look.disconnect();
});

t.test('while Redis is away refreshes are counted in this process and all else is refused', async (t) => {
  await own.stop();
  t.same(await hits('refresh-session', 's1', 4), ['OK', 'OK', 'RATE_LIMITED', 'RATE_LIMITED']);
  t.equal(await hit('refresh-session', 's2'), 'OK');
  t.same(await hits('login-ip', '192.0.2.9', 2), ['UNAVAILABLE', 'UNAVAILABLE']);
});
