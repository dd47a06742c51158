import type { Answer } from './client.js';

/** Times of calls for known and unknown addresses, in ms. */
export type Times = Record<'known' | 'unknown', number[]>;

/** How often a time of the one kind is above one of the other: 0.5 when they cannot be told apart. */
export function auc({ known, unknown }: Times): number {
  let above = 0;
  for (const a of known) for (const b of unknown) above += a > b ? 1 : a === b ? 0.5 : 0;
  return above / (known.length * unknown.length);
}

export const median = (values: number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

export interface Comparison {
  /** Pairs that count, and pairs before them that do not. */
  rounds: number;
  warm: number;
  /** Pairs under way at once. */
  lanes: number;
}

/** Times both kinds in turn, a few pairs at once, so that what else the machine does meets both; which comes first changes. */
export async function compare({ rounds, warm, lanes }: Comparison, callOf: (lane: number) => (kind: keyof Times, i: number) => Promise<Answer>): Promise<Times> {
  const times: Times = { known: [], unknown: [] };
  const lane = async (first: number): Promise<void> => {
    const call = callOf(first);
    for (let i = first; i < warm + rounds; i += lanes) {
      const isEven = Math.floor(i / lanes) % 2 === 0;
      for (const kind of isEven ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const)) {
        const started = performance.now();
        await call(kind, i);
        if (i >= warm) times[kind].push(performance.now() - started);
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, first) => lane(first)));
  return times;
}
