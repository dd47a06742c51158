import { ApiError } from '../errors.js';

export interface GatherOptions {
  /** Items of one batch at most. */
  most: number;
  /** With so many a batch does not wait for more; `most` unless told. */
  enough?: number;
  /** Batches under way at most: what comes meanwhile waits for the next, so that load makes batches larger, not more. */
  lanes?: number;
  /** Told how many items each batch has, before it is worked on. */
  onBatch?: ((items: number) => void) | undefined;
  /** How long a batch waits for more items, in ms; 0 takes what event-loop turns bring that follow each other. */
  lingerMs?: () => number;
}

/** Whoever waited for so long, in ms, when a batch before failed because the store is away, fails with it. */
const LATE_MS = 100;

/** As long as each event-loop turn brings more items, a batch waits for the next turn, but no longer than this, in ms. */
const TURNS_MS = 1;

/**
 * Turns single calls into batches: items handed in within a turn, within turns that each bring more, or within the
 * linger, are worked on together, in the order they came. `work` answers each item by its position. When it throws, each item is tried alone, so that one
 * that cannot be done fails its own caller only; while a store is away (UNAVAILABLE) all of the batch fail at once.
 */
export function gather<In, Out>(work: (items: In[]) => Promise<Out[]>, { most, enough = most, lanes = Infinity, onBatch, lingerMs = () => 0 }: GatherOptions): (item: In) => Promise<Out> {
  interface Waiting {
    item: In;
    since: number;
    resolve: (out: Out) => void;
    reject: (error: unknown) => void;
  }
  let waiting: Waiting[] = [];
  let underWay = 0;
  let planned: { cancel: () => void } | null = null;
  let seen = 0;

  function plan(): void {
    const linger = lingerMs();
    if (linger > 0) {
      const timer = setTimeout(start, linger);
      planned = { cancel: () => clearTimeout(timer) };
    } else {
      seen = waiting.length;
      const turn = setImmediate(look);
      planned = { cancel: () => clearImmediate(turn) };
    }
  }

  /** Under load requests come in a few at a time, and a statement costs more than what it does for one of them. */
  function look(): void {
    if (waiting.length > seen && performance.now() - waiting[0]!.since < TURNS_MS) plan();
    else start();
  }

  function start(): void {
    planned?.cancel();
    planned = null;
    while (waiting.length > 0 && underWay < lanes) {
      const batch = waiting.length > most ? waiting.splice(0, most) : waiting;
      if (batch === waiting) waiting = [];
      underWay += 1;
      onBatch?.(batch.length);
      void run(batch).then(landed);
    }
  }

  function landed(): void {
    underWay -= 1;
    // What lingers is not hurried along.
    if (waiting.length > 0 && !planned) plan();
  }

  async function run(batch: Waiting[]): Promise<void> {
    try {
      const outs = await work(batch.map(({ item }) => item));
      for (let i = 0; i < batch.length; i += 1) batch[i]!.resolve(outs[i]!);
    } catch (error) {
      if (isAway(error)) giveUp([...batch, ...takeLate()], error);
      else if (batch.length === 1) batch[0]!.reject(error);
      else await Promise.all(batch.map((one) => run([one])));
    }
  }

  const giveUp = (batch: Waiting[], error: unknown): void => batch.forEach(({ reject }) => reject(error));

  /** Those that have waited for a store that did not answer: to wait for it once more would be too long. */
  function takeLate(): Waiting[] {
    const since = performance.now() - LATE_MS;
    const late = waiting.filter((one) => one.since < since);
    if (late.length > 0) waiting = waiting.filter((one) => one.since >= since);
    return late;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, since: performance.now(), resolve, reject });
      if (waiting.length >= enough && underWay < lanes) start();
      else if (!planned && underWay < lanes) plan();
    });
}

const isAway = (error: unknown): boolean => error instanceof ApiError && error.code === 'UNAVAILABLE';
