/** A program that can be asked whether it still runs. */
export interface Running {
  isAlive(): boolean;
  stop: () => Promise<void>;
}

/** Starts something when it is first asked for, and anew when it has ended; its stop goes to `closers`. */
export function onDemand<T extends Running>(start: () => T | Promise<T>, closers: (() => Promise<unknown>)[]): () => Promise<T> {
  let current: Promise<T | null> = Promise.resolve(null);
  const begin = async (): Promise<T> => {
    const started = await start();
    closers.push(started.stop);
    return started;
  };
  // One after the other, so that two who ask at a time get the same.
  return () => {
    const next = current.catch(() => null).then((known) => (known?.isAlive() ? known : begin()));
    current = next;
    return next;
  };
}
