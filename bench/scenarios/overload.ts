import { median } from '../numbers.js';
import { faultsIn, inRounds, ratioOf, rowOf, sampleOf, type Finding } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { LoadResult } from '../load/job.js';

const TIMES = 2;
const REFUSED = '503 OVERLOADED';
/** Most that the 99th percentile of a refusal may take, in ms. */
const WANTED_MS = 50;
/** Until the queue is full and refusals have begun, in ms: beyond HASH_QUEUE_MS. */
const FILL_MS = 2_000;

/** Twice as many logins as the service can do: how many it still does, and how fast it refuses the rest. */
export async function overload(stage: Stage): Promise<Finding> {
  const [normal, flooded]: [LoadResult[], LoadResult[]] = [[], []];
  const keep = (list: LoadResult[], result: LoadResult): LoadResult => (list.push(result), result);
  const { capacity, goodput } = await inRounds(stage, 'overload', {
    capacity: async () => sampleOf(keep(normal, await stage.load({ traffic: 'login', pace: { connections: stage.connections } }))),
    goodput: async (round) => {
      const perSecond = Math.max(1, TIMES * round['capacity']!.perSecond);
      return sampleOf(keep(flooded, await stage.load({ traffic: 'login', pace: { perSecond }, warmMs: FILL_MS })));
    },
  });
  const refusals = flooded.map(({ replies }) => {
    const all = Object.values(replies).reduce((sum, { count }) => sum + count, 0);
    const refused = replies[REFUSED] ?? { count: 0, p50: 0, p99: 0 };
    return { perSecond: (refused.count * 1000) / stage.plan.measureMs, share: refused.count / Math.max(1, all), p50: refused.p50, p99: refused.p99, cpuUs: null, idle: null };
  });
  const refused = rowOf(`refused with ${REFUSED}`, refusals, `${Math.round(100 * median(refusals.map(({ share }) => share)))} % of all replies`);
  const p99 = refused.p99 ?? 0;
  return {
    rows: [
      rowOf('login, as many as it takes', capacity),
      { ...rowOf(`login, at ${TIMES} times that`, goodput, ratioOf(goodput, capacity, 'the same without overload').text), cpuUs: null },
      refused,
    ],
    targets: [{ what: 'p99 of a refusal under overload', wanted: `at most ${WANTED_MS} ms`, got: `${p99.toFixed(1)} ms`, met: p99 <= WANTED_MS }],
    faults: [...faultsIn('login', normal), ...faultsIn('login under overload', flooded, ['200', REFUSED])],
  };
}
