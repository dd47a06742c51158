import { faultsIn, ratioNote, ratios, rowOf, targetOf, type Finding, type Row, type Target } from '../findings.js';
import type { LoadResult, LoadTarget, Traffic } from '../load/job.js';
import { inRounds, keeper, sampleOf, type Measure } from '../rounds.js';
import type { Stage } from '../stage.js';

const SMALL = 1_000;
const WANTED = 0.9;
const KINDS = ['login', 'refresh', 'profile'] as const satisfies Traffic[];

/** The same load on a node with few accounts and on one with many; both have as many sessions in use. */
export async function scale(stage: Stage): Promise<Finding> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const target = async (accounts: number): Promise<LoadTarget> => {
      const seeded = await stage.seed(accounts);
      undo.push(seeded.database.drop);
      const node = await stage.startNode(`portcullis-${accounts}`, seeded);
      undo.push(node.stop);
      return node.target;
    };
    return await compare(stage, await target(SMALL), await target(stage.plan.large));
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function compare(stage: Stage, small: LoadTarget, large: LoadTarget): Promise<Finding> {
  const { keep, kept } = keeper<LoadResult>(stage);
  const load = (traffic: Traffic, target: LoadTarget): Measure => async () => sampleOf(keep(await stage.load({ traffic, target, pace: { connections: traffic === 'login' ? stage.loginConnections : stage.connections }, sessions: stage.plan.activeSessions })));
  const measures = Object.fromEntries(KINDS.flatMap((kind) => [[`${kind} few`, load(kind, small)], [`${kind} many`, load(kind, large)]])) as Record<`${(typeof KINDS)[number]} ${'few' | 'many'}`, Measure>;
  const taken = await inRounds(stage, 'scale', measures);
  const [rows, targets]: [Row[], Target[]] = [[], []];
  const named = (accounts: number): string => `${accounts.toLocaleString('en')} accounts`;
  for (const kind of KINDS) {
    const [few, many] = [taken[`${kind} few`], taken[`${kind} many`]];
    const share = ratios(many, few);
    rows.push(rowOf(`${kind}-few`, `${kind}, ${named(small.accounts)}`, few), rowOf(`${kind}-many`, `${kind}, ${named(large.accounts)}`, many, ratioNote(share, 'those with few')));
    targets.push(targetOf(`${kind}: ${named(large.accounts)}, as a share of ${named(small.accounts)}`, { atLeast: WANTED }, '', share));
  }
  return { rows, targets, faults: faultsIn('scale', kept()) };
}
