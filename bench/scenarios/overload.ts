import { faultsIn, ratioNote, ratios, rowOf, targetOf, type Finding } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { watchMemory, type MemoryCourse } from '../memory.js';
import { spreadOf } from '../numbers.js';
import { inRounds, keeper, sampleOf } from '../rounds.js';
import type { Stage } from '../stage.js';
import { countOf, FILL_MS, refusalOf, REFUSED } from './storm.js';

const TIMES = 10;
/** Refreshes per second meanwhile: well below what the service can do, since their latency is asked for. */
const REFRESHES = 50;
const WANTED = { goodput: 0.95, queues: 2, refusalMs: 50, refreshMs: 50, growth: 5 };

interface Storm {
  logins: LoadResult;
  refreshes: LoadResult;
  memory: MemoryCourse | null;
}

/** Ten times as many logins as the service can do: how many it still does, how fast it refuses the rest, and what refreshes feel of it. */
export async function overload(stage: Stage): Promise<Finding> {
  const { plan, config } = stage;
  const [normal, storms] = [keeper<LoadResult>(stage), keeper<Storm>(stage)];
  const warmMs = FILL_MS + plan.warmMs;
  const { capacity, goodput } = await inRounds(stage, 'overload', {
    capacity: async () => sampleOf(normal.keep(await stage.load({ traffic: 'login', pace: { connections: stage.loginConnections } }))),
    goodput: async (round) => {
      const perSecond = Math.max(1, TIMES * (round['capacity']?.perSecond ?? 0));
      const { pid } = await stage.target();
      const [logins, refreshes, memory] = await Promise.all([
        stage.load({ traffic: 'login', pace: { perSecond }, warmMs }),
        stage.load({ traffic: 'refresh', pace: { perSecond: REFRESHES }, warmMs, precise: true }, 1),
        watchMemory(pid, warmMs, plan.measureMs),
      ]);
      return sampleOf(storms.keep({ logins, refreshes, memory }).logins);
    },
  });
  const taken = storms.kept();
  const share = spreadOf(taken.map(({ logins }) => (100 * (logins.replies[REFUSED]?.count ?? 0)) / Math.max(1, countOf(logins))))!;
  const offered = spreadOf(taken.map(({ logins }) => countOf(logins) / (plan.measureMs / 1000)))!;
  const held = ratios(goodput, capacity);
  const growth = taken.map(({ memory }) => memory && (100 * memory.growth) / memory.last);
  return {
    rows: [
      rowOf('login-peak', 'login, as many as it takes', capacity),
      { ...rowOf('login-storm', `login, ${TIMES} times that offered`, goodput, `${ratioNote(held, 'the peak')}; ${Math.round(offered.median)} offered per s`), cpuUs: null },
      rowOf('refused', `refused with ${REFUSED}`, taken.map(({ logins }) => refusalOf(logins, plan.measureMs)), `${share.median.toFixed(0)} % of all replies`),
      { ...rowOf('refresh-storm', `refresh at ${REFRESHES}/s meanwhile`, taken.map(({ refreshes }) => sampleOf(refreshes)), memoryNote(taken)), cpuUs: null },
    ],
    targets: [
      targetOf(`accepted logins at ${TIMES} times capacity, as a share of the peak`, { atLeast: WANTED.goodput }, '', held),
      targetOf('p99 of accepted logins in that storm', { atMost: WANTED.queues * config.hashQueueMs }, 'ms', goodput.map((sample) => sample?.p99 ?? null)),
      targetOf('p99 of refusals in that storm', { atMost: WANTED.refusalMs }, 'ms', taken.map(({ logins }) => logins.replies[REFUSED]?.p99 ?? null)),
      targetOf('refresh p99 in that storm', { atMost: WANTED.refreshMs }, 'ms', taken.map(({ refreshes }) => refreshes.replies['200']?.p99 ?? null)),
      targetOf('memory gained over that storm, as a share of all', { atMost: WANTED.growth }, '%', growth, 'the system does not tell'),
    ],
    faults: [...faultsIn('login', normal.kept()), ...faultsIn('login under overload', taken.map(({ logins }) => logins), ['200', REFUSED]), ...faultsIn('refresh under overload', taken.map(({ refreshes }) => refreshes))],
  };
}

function memoryNote(storms: Storm[]): string {
  const [perMinute, last] = [spreadOf(storms.map(({ memory }) => memory?.perMinute ?? null)), storms.map(({ memory }) => memory?.last ?? null)];
  if (!perMinute) return '';
  return `memory ${perMinute.median.toFixed(1)} MiB per minute (${perMinute.lowest.toFixed(1)} to ${perMinute.highest.toFixed(1)}); ${last[0]?.toFixed(0) ?? '-'} MiB in the first storm, ${last.at(-1)?.toFixed(0) ?? '-'} in the last`;
}
