import { availableParallelism, cpus, totalmem } from 'node:os';
import type { HashCost } from '../../../workers/protocol.js';
import { Failure } from '../outcome.js';
import type { Cell, Choice } from './capacity.js';
import { busyShare, readClocks } from './clocks.js';
import { COSTS } from './grid.js';
import type { CpuSplit, LoadJob, LoadResult } from './job.js';
import type { Stand } from './stand.js';

/** How long each thing is measured, in ms. */
export interface Pace {
  /** Cheap logins until the service runs as it does after minutes. */
  warmUpMs: number;
  /** Logins before each measurement, not counted. */
  settleMs: number;
  measureMs: number;
  /** Times that each cell is measured, in turns, so that a slow moment of the machine meets all of them. */
  passes: number;
  aloneMs: number;
  checkMs: number;
}

export const THOROUGH: Pace = { warmUpMs: 8_000, settleMs: 400, measureMs: 1_200, passes: 2, aloneMs: 700, checkMs: 6_000 };
export const QUICK: Pace = { warmUpMs: 3_000, settleMs: 300, measureMs: 700, passes: 1, aloneMs: 300, checkMs: 2_500 };

/** What every group of accounts costs; `warm` costs next to nothing. */
export const GROUPS: Record<string, HashCost> = { warm: { memoryKib: 64, passes: 1 }, ...Object.fromEntries(COSTS.map((cost, n) => [`c${n}`, cost])) };
const groupOf = (cost: HashCost): string => `c${COSTS.indexOf(cost)}`;

/** Logins under way at a time: enough to keep every thread at work and some waiting; as the benchmark has them. */
const connectionsFor = (threads: number): number => Math.min(1024, 32 * threads);

/** Told before each measurement. */
export type Tell = (done: number, total: number, now: { cost: HashCost; threads: number; perSecond: number }) => void;

export interface Machine {
  cores: number;
  cpu: string;
  memoryGiB: number;
  node: string;
}

export const describeMachine = (): Machine => ({ cores: availableParallelism(), cpu: cpus()[0]?.model.trim() ?? 'unknown', memoryGiB: Math.round(totalmem() / 2 ** 30), node: process.versions.node });

/** Share of all cores that others use, while nothing of ours is under way. */
export async function listenForOthers(): Promise<number> {
  const before = readClocks(process.pid);
  await new Promise((resolve) => setTimeout(resolve, 500));
  return busyShare(before, readClocks(process.pid));
}

/** Measures every cost with every number of threads that the memory of the machine allows. */
export async function measureCells(stand: Stand, threads: number[], pace: Pace, tell: Tell): Promise<Cell[]> {
  const cores = availableParallelism();
  const grid = threads.flatMap((count) => COSTS.filter(({ memoryKib }) => count * memoryKib * 1024 < process.availableMemory()).map((cost) => ({ cost, threads: count })));
  const results = new Map(grid.map((cell) => [cell, [] as LoadResult[]]));
  const total = 1 + COSTS.length + grid.length * pace.passes;
  let done = 0;
  let perSecond = 0;
  const run = async (group: string, count: number, connections: number, warmMs: number, measureMs: number): Promise<LoadResult> => {
    tell(done, total, { cost: GROUPS[group]!, threads: count, perSecond });
    await stand.resize(count);
    const result = await logins(stand, { group, pace: { connections }, warmMs, measureMs });
    perSecond = result.perSecond;
    done += 1;
    return result;
  };

  await run('warm', cores, connectionsFor(cores), pace.warmUpMs, 500);
  const alone = new Map<HashCost, number>();
  for (const cost of COSTS) alone.set(cost, (await run(groupOf(cost), cores, 1, 100, pace.aloneMs)).p50);
  for (let pass = 0; pass < pace.passes; pass += 1) {
    const order = pass % 2 === 0 ? grid : [...grid].reverse();
    for (const cell of order) results.get(cell)!.push(await run(groupOf(cell.cost), cell.threads, connectionsFor(cell.threads), pace.settleMs, pace.measureMs));
  }
  tell(total, total, { cost: COSTS[0]!, threads: cores, perSecond });
  return grid.map((cell) => ({ ...cell, aloneMs: alone.get(cell.cost)!, ...meanOf(results.get(cell)!) }));
}

/** A machine that is slow or busy gets more time: nothing can be told from no login at all. */
async function logins(stand: Stand, job: LoadJob): Promise<LoadResult> {
  for (let longer = 1; longer <= MOST_LONGER; longer *= 4) {
    const result = await stand.load({ ...job, measureMs: longer * job.measureMs });
    refuseFailures(result);
    if (result.perSecond > 0) return result;
  }
  throw new Failure(`not one login was over within ${(MOST_LONGER * job.measureMs) / 1000} s`);
}

const MOST_LONGER = 16;

function refuseFailures({ failures }: LoadResult): void {
  const kinds = Object.entries(failures);
  if (kinds.length > 0) throw new Failure(`logins failed while they were measured: ${kinds.map(([kind, count]) => `${count} x ${kind === 'none' ? 'no reply' : kind}`).join(', ')}`);
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function meanOf(results: LoadResult[]): Pick<Cell, 'perSecond' | 'cpu' | 'idle'> {
  const splits = results.map(({ cpu }) => cpu).filter((cpu) => cpu !== null);
  const part = (name: keyof CpuSplit): number => mean(splits.map((split) => split[name]));
  return {
    perSecond: mean(results.map((result) => result.perSecond)),
    idle: mean(results.map((result) => result.idle)),
    cpu: splits.length === 0 ? null : { hash: part('hash'), service: part('service'), load: part('load'), stores: part('stores'), others: part('others') },
  };
}

/** What logins at random moments were seen to do. */
export interface Check {
  perSecond: number;
  p99: number;
  isHeld: boolean;
}

const TRIES = 4;
/** Each try after one that missed the target is so much slower. */
const BACK = 0.9;

/** Tries the recommendation with logins at random moments, at the rate expected to hold the target and, if it does not, at less. */
export async function check(stand: Stand, { cell, within }: Choice, targetMs: number, pace: Pace): Promise<Check> {
  await stand.resize(cell.threads);
  let rate = within;
  for (let n = 1; ; n += 1) {
    const result = await logins(stand, { group: groupOf(cell.cost), pace: { perSecond: rate }, warmMs: 1_000, measureMs: pace.checkMs });
    const isHeld = result.p99 <= targetMs;
    if (isHeld || n === TRIES) return { perSecond: rate, p99: result.p99, isHeld };
    rate *= BACK;
  }
}
