import type { LoadResult } from './load/job.js';
import { spreadOf, type Spread } from './numbers.js';
import type { Sample } from './rounds.js';

/** What a scenario found. */
export interface Finding {
  rows: Row[];
  targets: Target[];
  /** Replies that should not have come; any makes the bench fail. */
  faults: string[];
}

/** One line of the table: each column over the rounds. */
export interface Row extends Record<keyof Sample, Spread | null> {
  /** By which charts find it. */
  id: string;
  what: string;
  note: string;
}

export type Unit = '' | '×' | 'ms' | '%' | 'MiB';

/** A promise of the project, and whether the median of this run kept it. */
export interface Target {
  what: string;
  wanted: { atLeast: number } | { atMost: number };
  unit: Unit;
  /** Null when it was not measured; `why` says why. */
  got: Spread | null;
  met: boolean | null;
  why: string;
}

export function rowOf(id: string, what: string, samples: readonly (Sample | null)[], note = ''): Row {
  const column = (name: keyof Sample): Spread | null => spreadOf(samples.map((sample) => sample?.[name] ?? null));
  return { id, what, note, perSecond: column('perSecond'), p50: column('p50'), p99: column('p99'), cpuUs: column('cpuUs'), idle: column('idle'), load: column('load') };
}

/** One figure of each round against a promise. */
export function targetOf(what: string, wanted: Target['wanted'], unit: Unit, rounds: readonly (number | null)[], why = ''): Target {
  const got = spreadOf(rounds);
  const met = got && ('atLeast' in wanted ? got.median >= wanted.atLeast : got.median <= wanted.atMost);
  return { what, wanted, unit, got, met, why };
}

/** The ratios of the single rounds, which a drift of the machine changes less than it does a ratio of medians. */
export function ratios(of: readonly (Sample | null)[], to: readonly (Sample | null)[], column: 'perSecond' | 'p99' = 'perSecond'): (number | null)[] {
  return of.map((sample, round) => {
    const [above, below] = [sample?.[column] ?? null, to[round]?.[column] ?? null];
    return above === null || below === null || below === 0 ? null : above / below;
  });
}

/** `0.82 of bare verifies (0.80 to 0.85)`; empty when there is none. */
export function ratioNote(each: readonly (number | null)[], ofWhat: string): string {
  const spread = spreadOf(each);
  if (!spread) return '';
  const text = (value: number): string => value.toFixed(value < 10 ? 2 : 1);
  return `${text(spread.median)} of ${ofWhat} (${text(spread.lowest)} to ${text(spread.highest)})`;
}

/** Counts replies of kinds that were not expected. */
export function faultsIn(what: string, results: readonly LoadResult[], expected: readonly string[] = ['200']): string[] {
  const counts = new Map<string, number>();
  for (const { replies } of results) {
    for (const [kind, { count }] of Object.entries(replies)) if (!expected.includes(kind)) counts.set(kind, (counts.get(kind) ?? 0) + count);
  }
  const faults = [...counts].map(([kind, count]) => `${what}: ${count} × ${kind === 'none' ? 'no reply' : kind}`);
  return results.some(({ replies }) => (replies['200']?.count ?? 0) === 0) ? [...faults, `${what}: a measurement without a single 200`] : faults;
}
