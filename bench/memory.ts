import { readFileSync } from 'node:fs';
import { median, slope } from './numbers.js';

/** Memory of a process, in MiB. */
export interface Memory {
  /** What stands in memory, files that are mapped included. */
  resident: number;
  /** Of this, what belongs to the process alone. */
  own: number;
}

/** Null where the system does not tell (proc(5)). */
export function readMemory(pid: number): Memory | null {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024;
    return { resident: mib('Rss'), own: mib('Private_Clean') + mib('Private_Dirty') };
  } catch {
    return null;
  }
}

/** Resident memory over some time, in MiB. */
export interface MemoryCourse {
  highest: number;
  /** The median of the last quarter. */
  last: number;
  /** What a straight line through it gains from beginning to end. */
  growth: number;
  /** The same per minute. */
  perMinute: number;
}

const EACH_MS = 100;

/** Watches a process from `afterMs` on for `forMs`; null where the system does not tell. */
export async function watchMemory(pid: number, afterMs: number, forMs: number): Promise<MemoryCourse | null> {
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  const seen: number[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => seen.push(residentOf(pid)), EACH_MS);
    setTimeout(() => {
      clearInterval(timer);
      resolve();
    }, forMs);
  });
  if (seen.length === 0 || seen.includes(0)) return null;
  const growth = slope(seen) * (seen.length - 1);
  return { highest: Math.max(...seen), last: median(seen.slice(-Math.ceil(seen.length / 4))), growth, perMinute: growth * (60_000 / forMs) };
}

/** Cheaper than smaps_rollup, which walks the page tables. */
function residentOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
