import type { HashCost } from '../../../workers/protocol.js';

/** What argon2id with one lane may cost by OWASP's Password Storage Cheat Sheet, which rates these equal; most memory first. */
export const COSTS: readonly HashCost[] = [
  { memoryKib: 47_104, passes: 1 },
  { memoryKib: 19_456, passes: 2 },
  { memoryKib: 12_288, passes: 3 },
  { memoryKib: 9_216, passes: 4 },
  { memoryKib: 7_168, passes: 5 },
];

/** Every number of threads is tried on machines with so many cores at most; on larger ones some. */
const FEW_CORES = 4;
const MOST_THREADS = 256;

/** Numbers of threads to try, from 1 to twice the cores. */
export function threadCounts(cores: number, isQuick: boolean): number[] {
  const some = isQuick ? [0.5, 1, 2] : [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2];
  const all = !isQuick && cores <= FEW_CORES ? Array.from({ length: 2 * cores }, (_, n) => n + 1) : [1, ...some.map((share) => Math.round(cores * share))];
  return [...new Set(all.map((threads) => Math.min(MOST_THREADS, Math.max(1, threads))))].sort((a, b) => a - b);
}

export const costText = ({ memoryKib, passes }: HashCost): string => `${memoryKib / 1024} MiB x ${passes}`;
