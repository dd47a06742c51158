/** Waiters by name, served one at a time in the order they came. */
export interface Turns {
  /** Whether anyone waits or works under this name. */
  busy(name: string): boolean;
  /** Runs `work` once everyone who came before has finished. */
  take<T>(name: string, work: () => Promise<T>): Promise<T>;
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return {
    busy: (name) => last.has(name),
    take(name, work) {
      const turn = (last.get(name) ?? Promise.resolve()).then(work, work);
      const settled = turn.catch(() => undefined).then(() => {
        if (last.get(name) === settled) last.delete(name);
      });
      last.set(name, settled);
      return turn;
    },
  };
}
