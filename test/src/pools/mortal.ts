import { existsSync, writeFileSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

export interface MortalJob {
  value: number;
  /** The thread dies if this file does not exist yet, and leaves it behind. */
  diesBefore?: string;
  /** The thread dies each time. */
  deadly?: boolean;
  ms?: number;
}

// While this file exists no thread can start.
if (existsSync((workerData as { barrier: string }).barrier)) throw new Error('cannot start');

/** A worker that dies when it is told to. */
export default function run({ value, diesBefore, deadly = false, ms = 0 }: MortalJob): Promise<number> {
  if (diesBefore !== undefined && !existsSync(diesBefore)) {
    writeFileSync(diesBefore, '');
    process.exit(1);
  }
  if (deadly) process.exit(1);
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}
