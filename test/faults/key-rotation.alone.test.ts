import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { scaled } from '../support/figures.js';
import type { Break } from '../support/racy.js';
import { quickFleet, startLoad, type Fleet, type Met } from '../support/rotating.js';

/** The shortest life of a token that can be set: a key is kept for so long and a little more. */
const SETTINGS = { ACCESS_TTL_S: '5', JWT_ROTATE_DAYS: '0' };

/** Rotates n times while users refresh and verifiers check what they get; ends early when `enough` says so. */
async function rotateUnderLoad(t: Test, n: number, enough: (met: Met) => boolean, build: { maxAgeMs?: number; breaks?: Break[] } = {}): Promise<{ met: Met; rotations: number; won: number }> {
  const fleet = await quickFleet(t, 3, SETTINGS, build);
  const { met, stop } = startLoad(fleet, await signIn(fleet, 3));
  let won = 0;
  while (won < n && !enough(met)) {
    // Two operators at once, each time.
    const both = await Promise.all([fleet.rotate(fleet.needs), fleet.rotate(fleet.needs)]);
    won += both.filter(({ kind }) => kind === 'rotated').length;
    const [one] = both;
    await sleep(one.kind === 'waiting' ? one.inMs + 1 : 5);
  }
  await stop();
  return { met, won, rotations: await fleet.rotations() };
}

const signIn = ({ nodes, account }: Fleet, n: number) =>
  Promise.all(
    Array.from({ length: n }, async () => {
      const { email, password } = await account();
      const client = nodes[0]!.client();
      return { client, refreshToken: (await client.login(email, password)).body['refreshToken'] as string };
    }),
  );

const ROTATIONS = scaled(12, 100);

t.test('rotations under load: no valid token is refused by a node, or by a verifier that keeps the key set for its max-age', { timeout: 110_000 }, async (t) => {
  const { met, won, rotations } = await rotateUnderLoad(t, ROTATIONS, () => false);
  t.same(met.refused, []);
  t.ok(won >= ROTATIONS, `${won} rotations were asked for and made`);
  t.ok(rotations >= won, `${rotations} in all: a wish that has to wait is a node’s to fulfil`);
  t.ok(met.keys.size > ROTATIONS / 2, `${met.issued} tokens by ${met.keys.size} keys`);
  t.ok(met.unavailable < met.issued / 20, `${met.unavailable} replies were 503`);
});

const refusedOnce = (met: Met): boolean => met.refused.length > 0;

t.test('when a key signs before it has been shown for long enough, the same test fails', { timeout: 60_000 }, async (t) => {
  const shown = 'AND created_at <= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND';
  const breaks: Break[] = [['dist/src/store/signing-keys.js', shown, shown.replace('AND ', 'AND (TRUE OR ').concat(')')]];
  // Sets are kept for longer, as no rotation waits for them: a machine that is busy shows it too.
  const { met } = await rotateUnderLoad(t, 200, refusedOnce, { maxAgeMs: 1000, breaks });
  t.ok(met.refused.some((why) => why.startsWith('new, by a verifier')), met.refused[0] ?? 'nothing was refused');
});

t.test('when a key is retired before its last token has ended, the same test fails', { timeout: 60_000 }, async (t) => {
  const breaks: Break[] = [['dist/src/store/signing-keys.js', 'INTERVAL (token_life_s * 1000000 + ?) MICROSECOND', 'INTERVAL (? * 0) MICROSECOND']];
  const { met } = await rotateUnderLoad(t, 100, refusedOnce, { breaks });
  t.ok(met.refused.some((why) => why.startsWith('late')), met.refused[0] ?? 'nothing was refused');
});

t.test('nodes rotate by themselves when JWT_ROTATE_DAYS have passed, one of them each time', { timeout: 60_000 }, async (t) => {
  const rotateS = scaled(1, 2);
  const fleet = await quickFleet(t, 3, { ...SETTINGS, JWT_ROTATE_DAYS: String(rotateS / 86_400) });
  const { met, stop } = startLoad(fleet, await signIn(fleet, 1));
  const began = performance.now();
  while ((await fleet.rotations()) < 3) await sleep(50);
  const seconds = (performance.now() - began) / 1000;
  await stop();
  t.ok(seconds > 2 * rotateS, `three rotations in ${seconds.toFixed(1)} s`);
  t.same(met.refused, []);
  const told = fleet.nodes.map((node) => node.output().split('the next signing key has taken over').length - 1);
  t.equal(told.reduce((sum, n) => sum + n, 0), await fleet.rotations(), `told of by ${told.join(', ')}`);
});
