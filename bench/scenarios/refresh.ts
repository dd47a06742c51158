import { bareSample, faultsIn, inRounds, ratioOf, rowOf, sampleOf, type Finding } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { LoadResult } from '../load/job.js';

/** Refreshes in json mode, each connection along its own chain of tokens, beside an empty route and a bare rotation. */
export async function refresh(stage: Stage): Promise<Finding> {
  const results: LoadResult[] = [];
  const keep = (result: LoadResult): LoadResult => (results.push(result), result);
  const { route, update, full } = await inRounds(stage, 'refresh', {
    route: async () => sampleOf(keep(await stage.route())),
    update: async () => bareSample(await stage.sql('update')),
    full: async () => sampleOf(keep(await stage.load({ traffic: 'refresh', pace: { connections: stage.connections } }))),
  });
  const note = `${ratioOf(full, update, 'the bare update').text}; ${ratioOf(full, route, 'the route').text}`;
  return { rows: [rowOf('empty route', route), rowOf('bare conditional update', update), rowOf('refresh', full, note)], targets: [], faults: faultsIn('refresh', results) };
}
