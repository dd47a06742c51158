import { faultsIn, ratioNote, ratios, rowOf, targetOf, type Finding } from '../findings.js';
import { bareSample, inRounds, keeper, peerMeasure, sampleOf, whyNoPeer } from '../rounds.js';
import type { Stage } from '../stage.js';
import type { LoadResult } from '../load/job.js';

/** Least share of the bare verify rate that whole logins must reach. */
const WANTED = 0.95;

/** Whole logins over HTTP, each of another account, beside threads that only verify. */
export async function login(stage: Stage): Promise<Finding> {
  const { keep, kept } = keeper<LoadResult>(stage);
  const { bare, full, peer } = await inRounds(stage, 'login', {
    bare: async () => bareSample(await stage.hashing()),
    full: async () => sampleOf(keep(await stage.load({ traffic: 'login', pace: { connections: stage.loginConnections } }))),
    peer: peerMeasure(stage, 'plain', 'peer-login'),
  });
  const toBare = ratios(full, bare);
  const [verify, whole, other] = [rowOf('verify', 'bare argon2 verifies', bare), rowOf('login', 'login', full), rowOf('peer-login', 'better-auth sign-in', peer)];
  const beyond = whole.cpuUs && verify.cpuUs ? `; ${Math.round(whole.cpuUs.median - verify.cpuUs.median)} µs of CPU beyond the verify` : '';
  return {
    rows: [verify, { ...whole, note: ratioNote(toBare, 'bare verifies') + beyond }, { ...other, note: other.perSecond ? ratioNote(ratios(peer, bare), 'bare verifies') : whyNoPeer(stage) }],
    targets: [targetOf('logins, as a share of bare verifies', { atLeast: WANTED }, '', toBare)],
    faults: faultsIn('login', kept()),
  };
}
