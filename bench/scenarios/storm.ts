import type { LoadResult } from '../load/job.js';
import type { Sample } from '../rounds.js';

export const REFUSED = '503 OVERLOADED';
/** Until the queue is full and refusals have begun, in ms: beyond HASH_QUEUE_MS. */
export const FILL_MS = 2_000;

export const countOf = ({ replies }: LoadResult): number => Object.values(replies).reduce((sum, { count }) => sum + count, 0);

/** The refusals of a load as a sample. */
export function refusalOf({ replies }: LoadResult, measureMs: number): Sample {
  const { count, p50, p99 } = replies[REFUSED] ?? { count: 0, p50: null, p99: null };
  return { perSecond: (count * 1000) / measureMs, p50, p99, cpuUs: null, idle: null, load: null };
}
