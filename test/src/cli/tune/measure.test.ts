import t, { type Test } from 'tap';
import { check, GROUPS, measureCells, type Pace } from '../../../../src/cli/tune/measure.js';
import { choose } from '../../../../src/cli/tune/capacity.js';
import { COSTS } from '../../../../src/cli/tune/grid.js';
import { openStand, type Stand } from '../../../../src/cli/tune/stand.js';
import type { Kind } from '../../../../src/cli/tune/stores.js';
import { ownRedis } from '../../../support/stores.js';

// What is measured here takes as long as the machine lets it.
t.setTimeout(180_000);

const BRIEF: Pace = { warmUpMs: 200, settleMs: 50, measureMs: 300, passes: 1, aloneMs: 150, checkMs: 500 };

async function stand(t: Test, kind: Kind): Promise<Stand> {
  const closers: (() => Promise<unknown>)[] = [];
  t.teardown(async () => {
    for (const close of closers.reverse()) await close();
  });
  return openStand(kind, GROUPS, closers);
}

t.test('every cost is measured with every number of threads, by whole logins with MySQL and Redis', async (t) => {
  process.env['REDIS_URL'] = (await ownRedis(t)).url;
  process.env['SECRET_KEY'] = Buffer.alloc(32, 7).toString('base64');
  const told: number[] = [];
  const cells = await measureCells(await stand(t, 'given'), [1, 2], BRIEF, (done, total) => told.push(done / total));
  t.equal(cells.length, 2 * COSTS.length);
  for (const { cost, threads, perSecond, aloneMs, cpu, idle } of cells) {
    t.ok(perSecond > 0 && aloneMs > 0 && idle >= 0 && idle < 1, `${cost.memoryKib} KiB, ${threads} threads: ${perSecond.toFixed(0)}/s, alone ${aloneMs.toFixed(1)} ms`);
    t.ok(cpu!.hash > 1000, 'a hash costs more than a millisecond');
    t.ok(cpu!.service >= 0 && cpu!.load > 0);
  }
  t.same(told, [...told].sort((a, b) => a - b));
  t.same([told[0], told.at(-1)], [0, 1]);
});

t.test('without stores the rest of a login is measured; what is recommended is tried', async (t) => {
  const one = await stand(t, 'none');
  const cells = await measureCells(one, [1], BRIEF, () => undefined);
  t.equal(cells.length, COSTS.length);
  const choice = choose(cells, { targetMs: 60_000, loginsPerS: null })!;
  t.equal(choice.isEnough, true);
  const held = await check(one, { ...choice, within: choice.within / 4 }, 60_000, BRIEF);
  t.match(held, { isHeld: true });
  t.ok(held.perSecond === choice.within / 4 && held.p99 > 0);
  const missed = await check(one, { ...choice, within: choice.within / 4 }, 0.001, { ...BRIEF, checkMs: 200 });
  t.match(missed, { isHeld: false });
  t.ok(missed.perSecond < held.perSecond, 'slower and slower, until it gives up');
});

t.test('what cannot be had is told in a sentence', async (t) => {
  const env = { ...process.env };
  t.teardown(() => Object.assign(process.env, env));
  process.env['MYSQL_URL'] = 'mysql://127.0.0.1:1/none';
  await t.rejects(openStand('given', GROUPS, []), { message: /^no database can be created: .*ECONNREFUSED/ });
  Object.assign(process.env, { MYSQL_URL: env['MYSQL_URL'], MYSQLD: '/no/such/program' });
  await t.rejects(openStand('own', GROUPS, []), { message: /MYSQLD names \/no\/such\/program/ });
});
