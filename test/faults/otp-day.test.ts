import t from 'tap';
import { codeOf, pause } from '../support/attempts.js';
import { startApp } from '../support/app.js';
import { figure, scaled } from '../support/figures.js';
import { openInbox } from '../support/inbox.js';
import { signedIn } from '../support/owner.js';

const HOUR_MS = 3_600_000;
const NETWORKS = scaled(60, 10_000);
/** The day is played through in so many steps; between two of them everything that is stored grows older. */
const STEPS = scaled(6, 24);
const LANES = 8;
const GUESSES = 5;
/** Longer than an errand rests before it starts, in ms. */
const REST_MS = 400;

const inbox = openInbox(t);
const service = await startApp(t, inbox.settings);
const { redis } = service.app.needs;

/** Lets time pass for what Redis has of one-time codes. */
async function age(ms: number): Promise<void> {
  for (const key of await redis.keys('idp:*:otp*')) {
    if ((await redis.type(key)) === 'zset') {
      for (const member of await redis.zrange(key, '0', '-1')) await redis.zincrby(key, -ms, member);
    } else {
      for (const [field, value] of Object.entries(await redis.hgetall(key))) if (field.endsWith('Until')) await redis.hset(key, field, Number(value) - ms);
    }
    // A key that has run out goes with the next tick.
    await redis.pexpire(key, Math.max(1, (await redis.pttl(key)) - ms));
  }
}

t.test('a day of guesses from networks that are all new, each with a new code: the account sees fifty at most', { timeout: 400_000 }, async (t) => {
  const owner = await signedIn(service, inbox);
  await owner.delete(await owner.deletionCode());
  const codes: Record<string, number> = {};
  const attack = async (i: number): Promise<void> => {
    const client = service.client({ ip: `${10 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}.9` });
    await client.request('POST', '/api/auth/account/restore-request', { body: { email: owner.email } });
    for (let guess = 0; guess < GUESSES; guess += 1) {
      const code = codeOf(await client.request('POST', '/api/auth/account/restore', { body: { email: owner.email, otp: String((i * GUESSES + guess) % 1e8).padStart(8, '0') } }));
      codes[code] = (codes[code] ?? 0) + 1;
    }
  };
  for (let step = 0; step < STEPS; step += 1) {
    const [from, to] = [Math.floor((step * NETWORKS) / STEPS), Math.floor(((step + 1) * NETWORKS) / STEPS)];
    await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
      for (let i = from + lane; i < to; i += LANES) await attack(i);
    }));
    await pause(REST_MS);
    if (step < STEPS - 1) await age((24 * HOUR_MS) / STEPS);
  }
  const checked = codes['OTP_INVALID'] ?? 0;
  const mails = inbox.to(owner.email).filter(({ template }) => template.endsWith('_requested')).length;
  t.same(Object.keys(codes).sort(), ['OTP_INVALID', 'OTP_LOCKED']);
  t.ok(checked > GUESSES, 'a lock ends: what is counted is a day');
  figure(t, 'T28', { did: `a day played through in ${STEPS} steps: ${NETWORKS} networks, each asks for a code and guesses ${GUESSES} times`, figure: `${checked} guesses checked, ${mails} mails`, ok: checked <= 50 && mails <= 10 });
});
