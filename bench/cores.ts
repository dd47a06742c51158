import { cpus } from 'node:os';

/** Time of all cores together since the machine started, in ms. */
export interface CoreTimes {
  idle: number;
  all: number;
}

export function readCores(): CoreTimes {
  const times = cpus().map((cpu) => cpu.times);
  return {
    idle: times.reduce((sum, time) => sum + time.idle, 0),
    all: times.reduce((sum, time) => sum + time.user + time.nice + time.sys + time.irq + time.idle, 0),
  };
}

/** Share of all cores that was idle between two readings, 0 to 1. */
export const idleShare = (before: CoreTimes, after: CoreTimes): number => (after.idle - before.idle) / Math.max(1, after.all - before.all);

const SETTLE_MS = 200;
const LISTEN_MS = 400;

/** Share of all cores that others use, seen while nothing of the bench is under way. */
export async function listenForOthers(): Promise<number> {
  // What the last measurement left behind (log flushes, closing connections) is not others.
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = readCores();
  await new Promise((resolve) => setTimeout(resolve, LISTEN_MS));
  return 1 - idleShare(before, readCores());
}
