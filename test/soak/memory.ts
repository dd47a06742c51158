import { readFileSync } from 'node:fs';

/** Memory of processes over time. */
export interface Memory {
  sample: (name: string, pid: number) => void;
  /** Of the process that is sampled under a name now, from the end of its warm-up on. */
  slopeOf: (name: string, warmUpMs: number) => Slope | null;
}

export interface Slope {
  mibPerHour: number;
  fromMib: number;
  toMib: number;
  /** How long it was looked at, in ms. */
  overMs: number;
}

interface Sample {
  at: number;
  mib: number;
}

const PAGE = 4096;
const BUCKETS = 20;

export function watchMemory(now: () => number = () => performance.now(), residentMib = residentOf): Memory {
  const lives = new Map<string, { pid: number; samples: Sample[] }>();
  return {
    sample(name, pid) {
      const life = lives.get(name);
      const samples = life?.pid === pid ? life.samples : [];
      const mib = residentMib(pid);
      if (mib !== null) samples.push({ at: now(), mib });
      lives.set(name, { pid, samples });
    },
    slopeOf(name, warmUpMs) {
      const { samples = [] } = lives.get(name) ?? {};
      const warm = samples.filter(({ at }) => at - samples[0]!.at >= warmUpMs);
      return warm.length < 3 ? null : slopeOf(warm);
    },
  };
}

function residentOf(pid: number): number | null {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE) / 2 ** 20;
  } catch {
    return null;
  }
}

/** The line of least squares through the lowest sample of each stretch: what lies above is waiting to be collected. */
function slopeOf(samples: Sample[]): Slope {
  const [from, to] = [samples[0]!.at, samples.at(-1)!.at];
  const lows: Sample[] = [];
  for (const sample of samples) {
    const bucket = Math.min(BUCKETS - 1, Math.floor(((sample.at - from) / (to - from)) * BUCKETS));
    if (!lows[bucket] || sample.mib < lows[bucket].mib) lows[bucket] = sample;
  }
  const points = lows.filter(Boolean);
  const mean = (of: (sample: Sample) => number): number => points.reduce((sum, one) => sum + of(one), 0) / points.length;
  const [at, mib] = [mean((one) => one.at), mean((one) => one.mib)];
  const [rise, run] = [mean((one) => (one.at - at) * (one.mib - mib)), mean((one) => (one.at - at) ** 2)];
  return { mibPerHour: (rise / run) * 3600_000, fromMib: points[0]!.mib, toMib: points.at(-1)!.mib, overMs: to - from };
}
