/** Weight of the newest observation in a mean. */
const NEWEST = 0.05;

/** How fast a queue in front of threads drains, learnt from the jobs that they do. Times in ms. */
export class DrainRate {
  private lastDoneAt = 0;
  /** Between two jobs that leave a queue that is never empty: what all programs on the cores allow, not just the threads. */
  private drainMs: number;

  /** @param meanRunMs first guess of how long one job runs; the first runs correct it */
  constructor(private meanRunMs: number, threads: number) {
    this.drainMs = meanRunMs / threads;
  }

  /** How long a job takes on its thread. */
  get runMs(): number {
    return this.meanRunMs;
  }

  /** How long so many jobs take to leave the queue. */
  waitMs(jobs: number): number {
    return jobs * this.drainMs;
  }

  /** So many jobs were done together, each in `ranMs`; `queued` wait now for so many threads. */
  done(jobs: number, ranMs: number, queued: number, threads: number): void {
    const now = performance.now();
    this.meanRunMs += (ranMs - this.meanRunMs) * NEWEST;
    // An empty queue says nothing of how fast it would drain, but a run bounds it.
    const observed = queued > 0 && this.lastDoneAt > 0 ? (now - this.lastDoneAt) / jobs : this.meanRunMs / threads;
    this.drainMs += (Math.min(observed, 4 * this.meanRunMs) - this.drainMs) * NEWEST;
    this.lastDoneAt = now;
  }

  /** The threads do so many times as much as before. */
  scale(factor: number): void {
    this.drainMs /= factor;
  }
}
