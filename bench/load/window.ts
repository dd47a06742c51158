import { readFileSync } from 'node:fs';
import { idleShare, readCores, type CoreTimes } from '../cores.js';
import { ascending, quantile } from '../numbers.js';
import type { LoadJob, LoadResult, Tally } from './job.js';

/** Collects what happens in the measured time, and reads CPU clocks at its two ends. */
export interface Window {
  /** performance.now() of its ends. */
  readonly from: number;
  readonly to: number;
  /** Notes a reply that took `ms`; `at` decides whether it counts. */
  reply(at: number, kind: string, ms: number): void;
  late(at: number, ms: number): void;
  /** What was collected, once the time is over. */
  result(): Promise<LoadResult>;
}

export function openWindow({ warmMs, measureMs, target }: LoadJob): Window {
  const from = performance.now() + warmMs;
  const to = from + measureMs;
  const times = new Map<string, number[]>();
  const lates: number[] = [];
  const [start, end] = [clocksIn(warmMs, target.pid), clocksIn(warmMs + measureMs, target.pid)];

  const inside = (at: number): boolean => at >= from && at < to;
  return {
    from,
    to,
    reply(at, kind, ms) {
      if (!inside(at)) return;
      const known = times.get(kind);
      if (known) known.push(ms);
      else times.set(kind, [ms]);
    },
    late(at, ms) {
      if (inside(at)) lates.push(ms);
    },
    async result() {
      const [before, after] = [await start, await end];
      const replies = Object.fromEntries([...times].map(([kind, values]) => [kind, tally(values)]));
      const count = Object.values(replies).reduce((sum, one) => sum + one.count, 0);
      const ranMs = before.ran === null || after.ran === null ? null : after.ran - before.ran;
      return {
        replies,
        perSecond: (replies['200']?.count ?? 0) / (measureMs / 1000),
        cpuUs: ranMs === null || count === 0 ? null : (ranMs * 1000) / count,
        idle: idleShare(before, after),
        load: (after.own - before.own) / Math.max(1, after.all - before.all),
        lateP99: quantile(ascending(lates), 0.99),
      };
    },
  };
}

function tally(values: number[]): Tally {
  const sorted = ascending(values);
  return { count: sorted.length, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: sorted.at(-1) ?? 0 };
}

interface Clocks extends CoreTimes {
  /** CPU time of the watched process, in ms. */
  ran: number | null;
  /** CPU time of this one, in ms. */
  own: number;
}

const clocksIn = (ms: number, pid: number): Promise<Clocks> => new Promise((resolve) => setTimeout(() => resolve({ ...readCores(), ran: ranMs(pid), own: ownMs() }), ms));

function ownMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** User and system time of a process so far (proc(5), in ticks of 10 ms). */
function ranMs(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}
