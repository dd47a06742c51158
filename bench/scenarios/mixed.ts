import { median } from '../numbers.js';
import { faultsIn, inRounds, rowOf, sampleOf, type Finding } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { LoadResult } from '../load/job.js';

const PER_SECOND = 200;
/** Most that the 99th percentile of a profile may take while logins fill every hashing thread, in ms. */
const WANTED_MS = 25;

/** Profiles at a fixed rate, first alone, then while logins saturate the hashing pool. */
export async function mixed(stage: Stage): Promise<Finding> {
  const [profiles, logins, lates]: [LoadResult[], LoadResult[], number[]] = [[], [], []];
  const keep = (list: LoadResult[], result: LoadResult): LoadResult => (list.push(result), result);
  const paced = { traffic: 'profile', pace: { perSecond: PER_SECOND } } as const;
  const taken = await inRounds(stage, 'mixed', {
    alone: async () => sampleOf(keep(profiles, await stage.load(paced, 'second'))),
    beside: async () => {
      const [flood, result] = await Promise.all([stage.load({ traffic: 'login', pace: { connections: stage.connections } }), stage.load(paced, 'second')]);
      keep(logins, flood);
      lates.push(result.lateP99);
      return sampleOf(keep(profiles, result));
    },
  });
  const beside = rowOf(`profile at ${PER_SECOND}/s beside logins`, taken.beside, `sent late by the load program: p99 ${median(lates).toFixed(1)} ms, included`);
  const p99 = beside.p99 ?? Infinity;
  // CPU per reply means nothing where two kinds of replies share the process.
  const rows = [rowOf(`profile at ${PER_SECOND}/s alone`, taken.alone), { ...beside, cpuUs: null }, { ...rowOf('login meanwhile', logins.map(sampleOf)), cpuUs: null }];
  return {
    rows,
    targets: [{ what: `profile p99 at ${PER_SECOND}/s beside saturating logins`, wanted: `under ${WANTED_MS} ms`, got: `${p99.toFixed(1)} ms`, met: p99 < WANTED_MS }],
    faults: [...faultsIn('profile', profiles), ...faultsIn('login', logins)],
  };
}
