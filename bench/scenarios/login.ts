import { bareSample, faultsIn, inRounds, ratioOf, rowOf, sampleOf, type Finding } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { LoadResult } from '../load/job.js';

/** Least share of the bare verify rate that whole logins must reach. */
const WANTED = 0.85;

/** Whole logins over HTTP, each of another account, beside threads that only verify. */
export async function login(stage: Stage): Promise<Finding> {
  const results: LoadResult[] = [];
  const load = (): Promise<LoadResult> => stage.load({ traffic: 'login', pace: { connections: stage.connections } });
  // V8 goes on optimising for half a minute of load, and the question is what a service does that has been running.
  for (let heats = 2; heats < stage.plan.rounds; heats += 1) results.push(await load());
  const { bare, full } = await inRounds(stage, 'login', {
    bare: async () => bareSample(await stage.hashing()),
    full: async () => {
      const result = await load();
      results.push(result);
      return sampleOf(result);
    },
  });
  const ratio = ratioOf(full, bare, 'bare verifies');
  const [verify, whole] = [rowOf('bare argon2 verifies', bare), rowOf('login', full, ratio.text)];
  const beyond = whole.cpuUs === null ? '' : `; ${Math.round(whole.cpuUs - verify.cpuUs!)} µs of CPU beyond the verify`;
  return {
    rows: [verify, { ...whole, note: ratio.text + beyond }],
    targets: [{ what: 'logins, as a share of bare verifies', wanted: `at least ${WANTED}`, got: ratio.value.toFixed(2), met: ratio.value >= WANTED }],
    faults: faultsIn('login', results),
  };
}
