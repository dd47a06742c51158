import t, { type Test } from 'tap';
import { lockOut, strangers, timed, WRONG } from '../support/attempts.js';
import { startApp } from '../support/app.js';
import { figure, scaled } from '../support/figures.js';
import { auc, compare, median, type Times } from '../support/ranks.js';

const { client, account } = await startApp(t, { LOGIN_DELAYS_S: '0', ARGON2_MEMORY_KIB: '4096' });
const stranger = strangers(client);
const ROUNDS = scaled(160, 500);
const WARM = 20;

const compareLogins = (known: (i: number) => string, unknown: (i: number) => string): Promise<Times> =>
  compare({ rounds: ROUNDS, warm: WARM, lanes: 4 }, () => {
    const from = stranger();
    return (kind, i) => from.login(kind === 'known' ? known(i) : unknown(i), WRONG);
  });

// 160 of each kind leave the figure a standard error of 0.03, 500 one of 0.018: four and nearly three of them on either side of the half.
const [LOW, HIGH] = [scaled(0.37, 0.45), scaled(0.63, 0.55)];

function same(t: Test, what: string, times: Times): void {
  const area = auc(times);
  const gap = Math.abs(median(times.known) - median(times.unknown));
  figure(t, 'T07', { did: `${ROUNDS} + ${ROUNDS} refusals of ${what} in turn`, figure: `AUC ${area.toFixed(3)}, medians ${gap.toFixed(2)} ms apart`, ok: area > LOW && area < HIGH && gap <= scaled(50, 2) });
}

// Of addresses that are not locked: see enumeration.alone.test.ts.
t.test('the time of a refusal does not tell whether a locked address is known', async (t) => {
  const { email } = await account();
  await Promise.all([lockOut(stranger(), email), lockOut(stranger(), 'locked-nobody@example.com')]);
  same(t, 'locked addresses, known and unknown,', await compareLogins(() => email, () => 'locked-nobody@example.com'));
});

t.test('nor does that of a failure that locks, although the owner of a known address is written to', async (t) => {
  // Every failure locks, so each is at an address of its own.
  const strict = await startApp(t, { LOGIN_DELAYS_S: '0', ARGON2_MEMORY_KIB: '4096', LOCKOUT_THRESHOLD: '1' });
  const { mysql, hashing } = strict.app.needs;
  const rounds = scaled(60, 500);
  const hash = await hashing.hash('the password of everybody', { network: 'tests' });
  const addresses = Array.from({ length: rounds + WARM }, (_, i) => `known-${i}@example.com`);
  await mysql.run(`INSERT INTO users (id, email, password_hash, email_verified_at) VALUES ${addresses.map(() => '(UUID(), ?, ?, UTC_TIMESTAMP(3))').join(', ')}`, addresses.flatMap((email) => [email, hash]));
  const next = strangers(strict.client);
  const times = await compare({ rounds, warm: WARM, lanes: 6 }, () => {
    const from = next();
    return (kind, i) => from.login(kind === 'known' ? addresses[i]! : `other-${i}@example.com`, WRONG);
  });
  const area = auc(times);
  const told = (await mysql.rows("SELECT id FROM notification_outbox WHERE template = 'account_locked'")).length;
  t.equal(told, rounds + WARM, 'each of them was');
  // Of 60 the standard error is 0.053, of 500 it is 0.018.
  const band = scaled(0.21, 0.05);
  figure(t, 'T07', { did: `${rounds} + ${rounds} failures that lock known and unknown addresses in turn`, figure: `AUC ${area.toFixed(3)}`, ok: Math.abs(area - 0.5) <= band });
});

t.test('the failure that locks takes its time for both', async (t) => {
  const { email } = await account();
  for (const address of [email, 'another-nobody@example.com']) {
    const from = stranger();
    for (let i = 0; i < 4; i += 1) await from.login(address, WRONG);
    const { ms } = await timed(from.login(address, WRONG));
    t.ok(ms >= 100, `${Math.round(ms)} ms`);
  }
});
