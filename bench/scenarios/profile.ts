import { bareSample, faultsIn, inRounds, ratioOf, rowOf, sampleOf, type Finding } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { LoadResult } from '../load/job.js';

/** The profile of a signed-in account beside an empty route and a bare indexed select. */
export async function profile(stage: Stage): Promise<Finding> {
  const results: LoadResult[] = [];
  const keep = (result: LoadResult): LoadResult => (results.push(result), result);
  const { route, select, full } = await inRounds(stage, 'profile', {
    route: async () => sampleOf(keep(await stage.route())),
    select: async () => bareSample(await stage.sql('select')),
    full: async () => sampleOf(keep(await stage.load({ traffic: 'profile', pace: { connections: stage.connections } }))),
  });
  const note = `${ratioOf(full, select, 'the bare select').text}; ${ratioOf(full, route, 'the route').text}`;
  return { rows: [rowOf('empty route', route), rowOf('bare indexed select', select), rowOf('profile', full, note)], targets: [], faults: faultsIn('profile', results) };
}
