export interface GatherOptions {
  /** Items of one batch at most. */
  most: number;
  /** How long a batch may wait for more items, in ms; 0 takes what one event-loop turn brings. */
  lingerMs?: () => number;
}

/**
 * Turns single calls into batches: items handed in within one turn, or within the linger, are worked on together.
 * `work` answers each item by its position; when it throws, every caller of the batch fails with that error.
 */
export function gather<In, Out>(work: (items: In[]) => Promise<Out[]>, { most, lingerMs = () => 0 }: GatherOptions): (item: In) => Promise<Out> {
  interface Waiting {
    item: In;
    resolve: (out: Out) => void;
    reject: (error: unknown) => void;
  }
  let batch: Waiting[] = [];

  function flush(taken: Waiting[]): void {
    // A full batch has gone already.
    if (taken !== batch) return;
    batch = [];
    work(taken.map(({ item }) => item)).then(
      (outs) => taken.forEach(({ resolve }, i) => resolve(outs[i]!)),
      (error: unknown) => taken.forEach(({ reject }) => reject(error)),
    );
  }

  return (item) =>
    new Promise((resolve, reject) => {
      batch.push({ item, resolve, reject });
      const mine = batch;
      if (mine.length >= most) return flush(mine);
      if (mine.length > 1) return;
      const linger = lingerMs();
      if (linger > 0) setTimeout(() => flush(mine), linger);
      else setImmediate(() => flush(mine));
    });
}
