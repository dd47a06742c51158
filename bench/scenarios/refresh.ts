import { faultsIn, ratioNote, ratios, rowOf, targetOf, type Finding } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { PEER_MODES } from '../peers.js';
import { bareSample, inRounds, keeper, peerMeasure, sampleOf, whyNoPeer } from '../rounds.js';
import type { Stage } from '../stage.js';

/** Least multiple of better-auth's session checks. */
const WANTED = 8;

/** Refreshes in json mode with the limits on, each connection along its own chains of tokens, beside a bare rotation. */
export async function refresh(stage: Stage): Promise<Finding> {
  const { keep, kept } = keeper<LoadResult>(stage);
  const { update, full, peer } = await inRounds(stage, 'refresh', {
    update: async () => bareSample(await stage.sql('update')),
    full: async () => sampleOf(keep(await stage.load({ traffic: 'refresh', pace: { connections: stage.connections } }))),
    peer: peerMeasure(stage, 'plain', 'peer-session'),
  });
  const toPeer = ratios(full, peer);
  const other = rowOf('peer-beside-refresh', PEER_MODES.plain, peer);
  return {
    rows: [
      rowOf('update', 'bare conditional update', update),
      rowOf('refresh', 'refresh', full, ratioNote(ratios(full, update), 'the bare update')),
      { ...other, note: other.perSecond ? `refresh: ${ratioNote(toPeer, 'this')}` : whyNoPeer(stage) },
    ],
    targets: [targetOf('refreshes, as a multiple of better-auth get-session', { atLeast: WANTED }, '×', toPeer, whyNoPeer(stage))],
    faults: faultsIn('refresh', kept()),
  };
}
