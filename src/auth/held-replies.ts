/** Failed logins whose reply waits. A held reply costs a timer and its socket: no thread, no connection, no lock. */
export interface HeldReplies {
  /** Resolves after `ms`, or earlier when the client leaves, the server stops or too many are held. */
  hold(ms: number, gone: AbortSignal): Promise<void>;
  /** Lets every held reply go, now and from now on. */
  releaseAll(): void;
}

/** More would cost memory that a flood could choose. */
const MOST_HELD = 10_000;

export function createHeldReplies(count: (held: number) => void): HeldReplies {
  const held = new Set<() => void>();
  let stopping = false;
  return {
    hold(ms, gone) {
      if (ms <= 0 || stopping || gone.aborted || held.size >= MOST_HELD) return Promise.resolve();
      return new Promise((resolve) => {
        const release = (): void => {
          clearTimeout(timer);
          gone.removeEventListener('abort', release);
          held.delete(release);
          count(held.size);
          resolve();
        };
        const timer = setTimeout(release, ms);
        gone.addEventListener('abort', release);
        held.add(release);
        count(held.size);
      });
    },
    releaseAll() {
      stopping = true;
      for (const release of held) release();
    },
  };
}
