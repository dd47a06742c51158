import { SingleBar } from 'cli-progress';

/** What long work tells of itself; the values fill the words in braces. */
export interface Progress {
  update(done: number, total: number, values?: Record<string, number>): void;
}

/**
 * Runs work with a progress bar on standard error, when that is a terminal. The bar ends with the work, however it
 * ends: its timer would keep the program alive.
 */
export async function withProgress<T>(format: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  // Ctrl-C stops the program, not just the bar, and must leave the terminal as it was.
  const bar = new SingleBar({ format, stream: process.stderr, noTTYOutput: false, gracefulExit: false, linewrap: true });
  let isStarted = false;
  try {
    return await work({
      update(done, total, values = {}) {
        if (!isStarted) bar.start(total, done, values);
        isStarted = true;
        bar.setTotal(total);
        bar.update(done, values);
      },
    });
  } finally {
    bar.stop();
  }
}
