/** Failed logins whose reply waits. A held reply costs a timer and its socket: no thread, no connection, no lock. */
export interface HeldReplies {
  /** Resolves at `until` (performance.now()) and never before, unless the client leaves, the server stops or too many are held. */
  hold(until: number, gone: AbortSignal): Promise<void>;
  /** Lets every held reply go, now and from now on. */
  releaseAll(): void;
}

/** More would cost memory that a flood could choose. */
const MOST_HELD = 10_000;

export function createHeldReplies(count: (held: number) => void): HeldReplies {
  const held = new Set<() => void>();
  let stopping = false;
  return {
    hold(until, gone) {
      if (until <= performance.now() || stopping || gone.aborted || held.size >= MOST_HELD) return Promise.resolve();
      return new Promise((resolve) => {
        let timer: NodeJS.Timeout;
        const release = (): void => {
          clearTimeout(timer);
          gone.removeEventListener('abort', release);
          held.delete(release);
          count(held.size);
          resolve();
        };
        const wait = (): void => {
          const left = until - performance.now();
          // Timers count from the start of their turn of the event loop, so one may fire early.
          if (left > 0) timer = setTimeout(wait, Math.ceil(left));
          else release();
        };
        gone.addEventListener('abort', release);
        held.add(release);
        count(held.size);
        wait();
      });
    },
    releaseAll() {
      stopping = true;
      for (const release of held) release();
    },
  };
}
