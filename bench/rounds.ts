import type { LoadResult } from './load/job.js';
import { median } from './numbers.js';
import type { Stage } from './stage.js';

/** One measurement of one thing; latencies in ms. What does not apply is null. */
export interface Sample {
  perSecond: number;
  p50: number | null;
  p99: number | null;
  /** CPU time per piece of work in the process that does it, in µs. */
  cpuUs: number | null;
  /** Share of all cores that was idle. */
  idle: number | null;
}

/** What a scenario found. */
export interface Finding {
  rows: Row[];
  targets: Target[];
  /** Replies that should not have come; any makes the bench fail. */
  faults: string[];
}

export interface Row extends Sample {
  what: string;
  note: string;
  /** perSecond of each round. */
  rounds: number[];
}

/** A promise of the project, and whether this run kept it. */
export interface Target {
  what: string;
  wanted: string;
  got: string;
  met: boolean;
}

/** Takes every measurement once per round, in the order given, so that a slow minute of the machine meets all of them. */
export async function inRounds<Names extends string, Result extends { perSecond: number }>(
  stage: Stage,
  title: string,
  measures: { [N in Names]: (round: Record<string, Result>) => Promise<Result> },
): Promise<{ [N in Names]: Result[] }> {
  const taken = Object.fromEntries(Object.keys(measures).map((name) => [name, []])) as unknown as { [N in Names]: Result[] };
  for (let round = 1; round <= stage.plan.rounds; round += 1) {
    await stage.listen();
    const now: Record<string, Result> = {};
    for (const [name, measure] of Object.entries(measures) as [Names, (round: Record<string, Result>) => Promise<Result>][]) {
      now[name] = await measure(now);
      taken[name].push(now[name]);
    }
    const figures = Object.entries(now).map(([name, { perSecond }]) => `${name} ${Math.round(perSecond)}/s`);
    stage.say(`${title} ${round}/${stage.plan.rounds}: ${figures.join(', ')}`);
  }
  return taken;
}

/** A load's replies of one kind as a sample; `perSecond` counts 200s only. */
export function sampleOf({ replies, perSecond, cpuUs, idle }: LoadResult): Sample {
  return { perSecond, p50: replies['200']?.p50 ?? null, p99: replies['200']?.p99 ?? null, cpuUs, idle };
}

export const bareSample = (result: Partial<Sample> & { perSecond: number }): Sample => ({ p50: null, p99: null, cpuUs: null, idle: null, ...result });

/** One line of the table: the median of each column over the rounds. */
export function rowOf(what: string, samples: Sample[], note = ''): Row {
  const middle = (column: Exclude<keyof Sample, 'perSecond'>): number | null => {
    const values = samples.map((sample) => sample[column]).filter((value) => value !== null);
    return values.length === 0 ? null : median(values);
  };
  const rounds = samples.map((sample) => sample.perSecond);
  return { what, note, rounds, perSecond: median(rounds), p50: middle('p50'), p99: middle('p99'), cpuUs: middle('cpuUs'), idle: middle('idle') };
}

export interface Ratio {
  value: number;
  text: string;
}

/** Median of the ratios of the single rounds, which a drift of the machine changes less than it does the medians. */
export function ratioOf(full: { perSecond: number }[], bare: { perSecond: number }[], ofWhat: string): Ratio {
  const each = full.map(({ perSecond }, round) => perSecond / bare[round]!.perSecond);
  const value = median(each);
  return { value, text: `${value.toFixed(2)} of ${ofWhat} (${Math.min(...each).toFixed(2)} to ${Math.max(...each).toFixed(2)})` };
}

/** Counts replies of kinds that were not expected. */
export function faultsIn(what: string, results: LoadResult[], expected: readonly string[] = ['200']): string[] {
  const counts = new Map<string, number>();
  for (const { replies } of results) {
    for (const [kind, { count }] of Object.entries(replies)) if (!expected.includes(kind)) counts.set(kind, (counts.get(kind) ?? 0) + count);
  }
  const faults = [...counts].map(([kind, count]) => `${what}: ${count} × ${kind === 'none' ? 'no reply' : kind}`);
  return results.some(({ replies }) => (replies['200']?.count ?? 0) === 0) ? [...faults, `${what}: a measurement without a single 200`] : faults;
}
