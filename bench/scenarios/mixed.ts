import { faultsIn, ratios, rowOf, targetOf, type Finding } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { median } from '../numbers.js';
import { inRounds, keeper, sampleOf } from '../rounds.js';
import type { Stage } from '../stage.js';

const PER_SECOND = 200;
/** Most that the 99th percentile of a profile may take while logins fill every hashing thread: in ms, and of what it takes alone. */
const WANTED = { ms: 10, times: 3 };

/** Profiles at a fixed rate, first alone, then while logins saturate the hashing pool. */
export async function mixed(stage: Stage): Promise<Finding> {
  const [quiet, busy, logins] = [keeper<LoadResult>(stage), keeper<LoadResult>(stage), keeper<LoadResult>(stage)];
  const paced = { traffic: 'profile', pace: { perSecond: PER_SECOND }, precise: true } as const;
  const { alone, beside } = await inRounds(stage, 'mixed', {
    alone: async () => sampleOf(quiet.keep(await stage.load(paced, 1))),
    beside: async () => {
      const [flood, result] = await Promise.all([stage.load({ traffic: 'login', pace: { connections: stage.loginConnections } }), stage.load(paced, 1)]);
      logins.keep(flood);
      return sampleOf(busy.keep(result));
    },
  });
  const late = (results: LoadResult[]): string => `sent late by the load program: p99 ${median(results.map(({ lateP99 }) => lateP99)).toFixed(2)} ms, included`;
  // CPU per reply means nothing where two kinds of replies share the process.
  const [one, two, three] = [
    rowOf('profile-alone', `profile at ${PER_SECOND}/s alone`, alone, late(quiet.kept())),
    rowOf('profile-beside', `profile at ${PER_SECOND}/s beside logins`, beside, late(busy.kept())),
    rowOf('login-meanwhile', 'login meanwhile', logins.kept().map(sampleOf)),
  ];
  return {
    rows: [one, { ...two, cpuUs: null }, { ...three, cpuUs: null }],
    targets: [
      targetOf(`profile p99 at ${PER_SECOND}/s beside saturating logins`, { atMost: WANTED.ms }, 'ms', beside.map((sample) => sample?.p99 ?? null)),
      targetOf('the same p99, as a multiple of p99 alone', { atMost: WANTED.times }, '×', ratios(beside, alone, 'p99')),
    ],
    faults: [...faultsIn('profile', [...quiet.kept(), ...busy.kept()]), ...faultsIn('login', logins.kept())],
  };
}
