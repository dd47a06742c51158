// Mostly waits.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import t from 'tap';
import { loadConfig } from '../../../src/config/load.js';
import { pause, strangers, WRONG } from '../../support/attempts.js';
import { startApp, testEnv } from '../../support/app.js';
import { figure, scaled } from '../../support/figures.js';
import { ownRedis } from '../../support/stores.js';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** A script of the gate whose clock is its last argument, in ms. */
function clocked(name: string): string {
  const text = readFileSync(`${ROOT}lua/${name}.lua`, 'utf8');
  const clock = "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)";
  if (!text.includes(clock)) throw new Error(`${name} reads the time in another way`);
  return text.replace(clock, 'local now = tonumber(ARGV[#ARGV])');
}

/**
 * Guesses at one account that are verified in the first 24 hours, by somebody who sends the next one as soon as
 * the gate lets it in, each a moment after the one before. Later days have fewer: the first ones are not locked.
 */
async function guessesIn24Hours(redis: Redis, config: ReturnType<typeof loadConfig>): Promise<number> {
  const [reserve, settle] = [clocked('login-reserve'), clocked('login-settle')];
  const keys = ['idp:{bound}:gate:all', 'idp:{bound}:held:all', 'idp:{bound}:gate:all'];
  const inMs = (list: readonly number[], unit: number): string => list.map((one) => one * unit).join(',');
  await redis.del(...keys);
  let verified = 0;
  for (let now = 0; now < DAY; ) {
    const [outcome, retryMs] = (await redis.eval(reserve, 2, keys[0]!, keys[1]!, 'ticket', config.lockoutThreshold, 30_000, 0, 0, 0, now)) as [number, number];
    if (outcome === 3) throw new Error('the slot of the guess before is still held');
    if (outcome !== 0) {
      now += retryMs;
      continue;
    }
    verified += 1;
    await redis.eval(settle, 3, ...keys, 'ticket', 2, config.lockoutThreshold, DAY, inMs(config.loginDelaysS, 1000), inMs(config.lockoutMinutes, MINUTE), now);
    now += 1;
  }
  return verified;
}

t.test('SECURITY.md tells how many guesses a day the settings let through, as the scripts of the gate count them', async (t) => {
  const { url } = await ownRedis(t);
  const redis = new Redis(url);
  t.teardown(() => redis.disconnect());
  const { LOGIN_DELAYS_S: _delays, LOCKOUT_MINUTES: _locks, LOCKOUT_THRESHOLD: _threshold, ...env }: Record<string, string> = testEnv('mysql://x@x/x', url);
  const config = loadConfig(env);
  const guesses = await guessesIn24Hours(redis, config);
  const page = readFileSync(`${ROOT}SECURITY.md`, 'utf8');
  t.ok(page.includes(`**${guesses} guesses in 24 hours**`), `${guesses} guesses`);
  t.ok(page.includes(`locks for ${config.lockoutMinutes.join(', ')} minutes`));
  figure(t, 'T01', { did: `the scripts of the gate with threshold ${config.lockoutThreshold}, locks of ${config.lockoutMinutes.join(', ')} min, delays of ${config.loginDelaysS.join(', ')} s, and a clock that is set`, figure: `${guesses} verified guesses in 24 h`, ok: guesses <= 30 });
  t.ok((await guessesIn24Hours(redis, { ...config, lockoutMinutes: [15] })) > 30, 'with locks that do not grow there would be more');
});

t.test('as many get through to the service, hour for millisecond', async (t) => {
  // A day of so many ms: the shorter, the more of it is spent on the way.
  const day = scaled(8_640, 17_280);
  const scale = day / DAY;
  const minutes = (list: number[]): string => list.map((one) => String(one * scale)).join(',');
  const { client, account } = await startApp(t, { LOCKOUT_MINUTES: minutes([15, 30, 60]), LOGIN_DELAYS_S: minutes([2, 4, 8]) });
  const stranger = strangers(client);
  const { email } = await account();
  let [verified, sent] = [0, 0];
  for (const until = performance.now() + day; performance.now() < until; sent += 1) {
    if ((await stranger().login(email, WRONG)).status === 401) verified += 1;
    await pause(2);
  }
  figure(t, 'T01', { did: `${sent} guesses over HTTP in a day of ${day / 1000} s, locks and delays to scale`, figure: `${verified} verified`, ok: verified >= 20 && verified <= 30 });
});
