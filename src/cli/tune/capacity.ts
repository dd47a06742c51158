import type { HashCost } from '../../../workers/protocol.js';
import type { CpuSplit } from './job.js';

/** What was measured for one cost and number of threads. Times in ms. */
export interface Cell {
  cost: HashCost;
  threads: number;
  /** Logins per second while more are always waiting: the most there is. */
  perSecond: number;
  /** A login that has the machine to itself. */
  aloneMs: number;
  cpu: CpuSplit | null;
  /** Share of all cores that was idle, 0 to 1. */
  idle: number;
}

/**
 * While logins queue, two statements of each wait for company: for this share of the wait for a thread, and at most so
 * long, in ms (the composition root says so).
 */
const LINGER = { times: 2, share: 0.75, mostMs: 100 };

/**
 * The 99th percentile of logins that arrive at random, `rate` per second: a queue in front of `threads` servers that
 * take equally long each (M/D/c: half the wait of M/M/c, whose tail is exponential). Infinity beyond capacity.
 */
export function p99At(rate: number, { perSecond, threads, aloneMs }: Pick<Cell, 'perSecond' | 'threads' | 'aloneMs'>): number {
  if (rate >= perSecond) return Infinity;
  const busyMs = (1000 * threads) / perSecond;
  const waits = chanceOfWait((rate * threads) / perSecond, threads);
  const waitMs = waits <= 0.01 ? 0 : (1000 * Math.log(waits / 0.01)) / (2 * (perSecond - rate));
  return Math.max(aloneMs, busyMs) + waitMs + LINGER.times * Math.min(LINGER.mostMs, LINGER.share * waitMs);
}

/** Erlang's C: the chance that all servers are busy, with `load` of them busy on average. */
export function chanceOfWait(load: number, servers: number): number {
  // By Erlang's B, whose recursion does not overflow.
  let blocked = 1;
  for (let n = 1; n <= servers; n += 1) blocked = (load * blocked) / (n + load * blocked);
  return blocked / (1 - (load / servers) * (1 - blocked));
}

/** The highest rate at which that percentile stays within the target; 0 when even a login alone takes longer. */
export function rateWithin(targetMs: number, cell: Pick<Cell, 'perSecond' | 'threads' | 'aloneMs'>): number {
  if (p99At(0, cell) > targetMs) return 0;
  let [low, high] = [0, cell.perSecond];
  for (let n = 0; n < 40; n += 1) {
    const middle = (low + high) / 2;
    if (p99At(middle, cell) <= targetMs) low = middle;
    else high = middle;
  }
  return low;
}

/** A login's share of one core may go on elsewhere: what this machine can do when stores and clients run on others. */
export function perSecondElsewhere({ perSecond, threads, cpu, idle }: Cell): number | null {
  if (!cpu) return null;
  const [here, all] = [cpu.hash + cpu.service, cpu.hash + cpu.service + cpu.load + cpu.stores + cpu.others];
  // What is idle now would not be used then either: it is the threads that are too few.
  return idle > 0.1 ? perSecond : Math.max(perSecond, Math.min((perSecond * all) / here, (threads * 1e6) / cpu.hash));
}

/** What a machine that others keep busy could do without them, by what a login takes of its cores. */
export function perSecondUndisturbed({ threads, cpu }: Cell, cores: number): number | null {
  return cpu && Math.min((cores * 1e6) / (cpu.hash + cpu.service + cpu.stores + cpu.load), (threads * 1e6) / cpu.hash);
}

export interface Wish {
  targetMs: number;
  /** Null: as many as possible. */
  loginsPerS: number | null;
}

export interface Choice {
  cell: Cell;
  /** Logins per second at which the target is expected to hold. */
  within: number;
  /** Whether that is what was wished for. */
  isEnough: boolean;
}

/** Rates closer than this are taken for equal: a measurement is no better. */
const EQUAL = 0.97;

/**
 * The cell to recommend. All costs are rated equal, so the quickest wins; unless a rate was wished for that several
 * reach: then the most memory, which costs attackers with special hardware most. Of equals, the fewest threads.
 */
export function choose(cells: Cell[], { targetMs, loginsPerS }: Wish): Choice | null {
  const rated = cells.map((cell) => ({ cell, within: rateWithin(targetMs, cell) })).filter(({ within }) => within > 0);
  const best = Math.max(0, ...rated.map(({ within }) => within));
  const isEnough = best > 0 && (loginsPerS === null || best >= loginsPerS);
  const least = isEnough && loginsPerS !== null ? loginsPerS : best * EQUAL;
  const byMemory = (a: Cell, b: Cell): number => b.cost.memoryKib - a.cost.memoryKib;
  const byThreads = (a: Cell, b: Cell): number => a.threads - b.threads;
  const order = loginsPerS === null ? [byThreads, byMemory] : [byMemory, byThreads];
  const [first] = rated.filter(({ within }) => within >= least).sort((a, b) => order[0]!(a.cell, b.cell) || order[1]!(a.cell, b.cell));
  return first ? { ...first, isEnough } : null;
}
