import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** Time spent so far, in ms. */
export interface Clocks {
  /** All cores together. */
  all: number;
  idle: number;
  /** The service, and of that its hashing threads; null where there is no /proc. */
  service: number | null;
  hashing: number;
  stores: number;
  /** This program. */
  own: number;
}

/** proc(5) counts in ticks of 10 ms. */
const TICK_MS = 10;

export function readClocks(pid: number, stores: readonly number[] = []): Clocks {
  const times = cpus().map((cpu) => cpu.times);
  const sum = (pick: (time: (typeof times)[number]) => number): number => times.reduce((total, time) => total + pick(time), 0);
  const { user, system } = process.cpuUsage();
  return { all: sum((time) => time.user + time.nice + time.sys + time.irq + time.idle), idle: sum((time) => time.idle), ...serviceTimes(pid), stores: stores.reduce((total, store) => total + timeOf(store), 0), own: (user + system) / 1000 };
}

/** Share of all cores that was busy between two readings, 0 to 1. */
export const busyShare = (before: Pick<Clocks, 'all' | 'idle'>, after: Pick<Clocks, 'all' | 'idle'>): number => 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);

function timeOf(pid: number): number {
  try {
    return readStat(`/proc/${pid}/stat`).ms;
  } catch {
    return 0;
  }
}

function serviceTimes(pid: number): { service: number | null; hashing: number } {
  try {
    const whole = readStat(`/proc/${pid}/stat`);
    const threads = readdirSync(`/proc/${pid}/task`).map((task) => readStat(`/proc/${pid}/task/${task}/stat`));
    // The hashing threads are those that yield to the rest of the process.
    return { service: whole.ms, hashing: threads.filter(({ nice }) => nice > whole.nice).reduce((total, { ms }) => total + ms, 0) };
  } catch {
    return { service: null, hashing: 0 };
  }
}

function readStat(path: string): { ms: number; nice: number } {
  const fields = readFileSync(path, 'latin1').split(') ').at(-1)!.split(' ');
  return { ms: (Number(fields[11]) + Number(fields[12])) * TICK_MS, nice: Number(fields[16]) };
}
