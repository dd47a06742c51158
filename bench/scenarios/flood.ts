import { faultsIn, rowOf, targetOf, type Finding } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { inRounds, keeper, sampleOf } from '../rounds.js';
import type { Stage } from '../stage.js';
import { countOf, FILL_MS, refusalOf, REFUSED } from './storm.js';

const TIMES = 10;
/** Of TEST-NET-2 and TEST-NET-3 (RFC 5737). */
const [FLOODER, OTHER] = ['198.51.100.1', '203.0.113.1'];
const PER_SECOND = 5;
const WANTED = { success: 100, ms: 1_000 };

/** One client address that sends ten times what the service can do, beside another that logs in five times a second. */
export async function flood(stage: Stage): Promise<Finding> {
  const { plan } = stage;
  const [floods, others] = [keeper<LoadResult>(stage), keeper<LoadResult>(stage)];
  const warmMs = FILL_MS + plan.warmMs;
  const capacity = await stage.load({ traffic: 'login', pace: { connections: stage.loginConnections } });
  const pace = { perSecond: Math.max(1, TIMES * capacity.perSecond) };
  const { other } = await inRounds(stage, 'flood', {
    other: async () => {
      const [flooding, other] = await Promise.all([
        stage.load({ traffic: 'login', pace, warmMs, address: FLOODER }),
        stage.load({ traffic: 'login', pace: { perSecond: PER_SECOND }, warmMs, address: OTHER, precise: true }, 1),
      ]);
      floods.keep(flooding);
      return sampleOf(others.keep(other));
    },
  });
  const success = others.kept().map((result) => (100 * (result.replies['200']?.count ?? 0)) / Math.max(1, countOf(result)));
  const offered = `${Math.round(pace.perSecond)} offered per s`;
  return {
    rows: [
      { ...rowOf('flooder', 'login of the flooding address', floods.kept().map(sampleOf), offered), cpuUs: null },
      rowOf('flooder-refused', `refused with ${REFUSED}`, floods.kept().map((result) => refusalOf(result, plan.measureMs))),
      { ...rowOf('neighbour', `login of another at ${PER_SECOND}/s`, other, `${others.kept().reduce((sum, result) => sum + countOf(result), 0)} logins in all`), cpuUs: null },
    ],
    targets: [
      targetOf('success of another address beside a flood', { atLeast: WANTED.success }, '%', success),
      targetOf('p99 of logins of that other address', { atMost: WANTED.ms }, 'ms', other.map((sample) => sample?.p99 ?? null)),
    ],
    faults: [...faultsIn('login of the flooding address', floods.kept(), ['200', REFUSED]), ...faultsIn('login of another address', others.kept())],
  };
}
