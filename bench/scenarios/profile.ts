import { faultsIn, ratioNote, ratios, rowOf, targetOf, type Finding, type Row } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { PEER_MODES, type PeerMode } from '../peers.js';
import { bareSample, inRounds, keeper, peerMeasure, sampleOf, whyNoPeer, type Sample } from '../rounds.js';
import type { Stage } from '../stage.js';

/** Least share of the empty route's rate, and least multiple of better-auth's session checks. */
const WANTED = { ofRoute: 0.35, ofPeer: 30 };

/** The profiles of signed-in accounts beside an empty route, a bare indexed select and the peer's session check. */
export async function profile(stage: Stage): Promise<Finding> {
  const { keep, kept } = keeper<LoadResult>(stage);
  const taken = await inRounds(stage, 'profile', {
    route: async () => sampleOf(await stage.route()),
    select: async () => bareSample(await stage.sql('select')),
    full: async () => sampleOf(keep(await stage.load({ traffic: 'profile', pace: { connections: stage.connections } }))),
    plain: peerMeasure(stage, 'plain', 'peer-session'),
    joined: peerMeasure(stage, 'joined', 'peer-session'),
    cached: peerMeasure(stage, 'cached', 'peer-session'),
  });
  const { route, select, full } = taken;
  const [toRoute, toPeer] = [ratios(full, route), ratios(full, taken.plain)];
  return {
    rows: [
      rowOf('route', 'empty route', route),
      rowOf('select', 'bare indexed select', select),
      rowOf('profile', 'profile', full, [ratioNote(toRoute, 'the route'), ratioNote(ratios(full, select), 'the bare select')].join('; ')),
      ...(Object.keys(PEER_MODES) as PeerMode[]).map((mode) => peerRow(stage, mode, taken[mode], full)),
    ],
    targets: [
      targetOf('profiles, as a share of the empty route', { atLeast: WANTED.ofRoute }, '', toRoute),
      targetOf('profiles, as a multiple of better-auth get-session', { atLeast: WANTED.ofPeer }, '×', toPeer, whyNoPeer(stage)),
    ],
    faults: faultsIn('profile', kept()),
  };
}

function peerRow(stage: Stage, mode: PeerMode, samples: (Sample | null)[], full: (Sample | null)[]): Row {
  const row = rowOf(`peer-${mode}`, PEER_MODES[mode], samples);
  return { ...row, note: row.perSecond ? `profile: ${ratioNote(ratios(full, samples), 'this')}` : whyNoPeer(stage) };
}
