import t, { type Test } from 'tap';
import { lockOut, strangers, timed, WRONG } from '../support/attempts.js';
import { startApp } from '../support/app.js';

const { client, account } = await startApp(t, { LOGIN_DELAYS_S: '0', ARGON2_MEMORY_KIB: '4096' });
const stranger = strangers(client);
const ROUNDS = 160;

type Times = Record<'known' | 'unknown', number[]>;

/** How often a time of the one kind is above one of the other: 0.5 when they cannot be told apart. */
function auc({ known, unknown }: Times): number {
  let above = 0;
  for (const a of known) for (const b of unknown) above += a > b ? 1 : a === b ? 0.5 : 0;
  return above / (known.length * unknown.length);
}
const median = (values: number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

const LANES = 4;
const WARM = 20;

/** Times both kinds in turn, a few pairs at once, so that what else the machine does meets both; which comes first changes. */
async function compare(known: (i: number) => string, unknown: (i: number) => string): Promise<Times> {
  const times: Times = { known: [], unknown: [] };
  const lane = async (first: number): Promise<void> => {
    const from = stranger();
    for (let i = first; i < WARM + ROUNDS; i += LANES) {
      for (const kind of (i >> 2) % 2 === 0 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const)) {
        const { ms } = await timed(from.login(kind === 'known' ? known(i) : unknown(i), WRONG));
        if (i >= WARM) times[kind].push(ms);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
  return times;
}

// 160 of each kind leave the figure a standard error of 0.03; four of them on either side of the half.
function same(t: Test, times: Times): void {
  const figure = auc(times);
  const gap = Math.abs(median(times.known) - median(times.unknown));
  t.ok(figure > 0.37 && figure < 0.63, `AUC ${figure.toFixed(3)}`);
  t.ok(gap <= 2, `medians differ by ${gap.toFixed(2)} ms`);
}

t.test('the time of a refusal does not tell whether an address is known', async (t) => {
  const emails = await Promise.all(Array.from({ length: WARM + ROUNDS }, async () => (await account()).email));
  same(t, await compare((i) => emails[i]!, (i) => `nobody-${i}@example.com`));
});

t.test('nor does that of a locked address', async (t) => {
  const { email } = await account();
  await Promise.all([lockOut(stranger(), email), lockOut(stranger(), 'locked-nobody@example.com')]);
  same(t, await compare(() => email, () => 'locked-nobody@example.com'));
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
