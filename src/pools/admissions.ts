import type { Asker } from './hashing.js';

/**
 * Who was let in and has not come yet: a place is theirs until they come, give it back, or let it lapse. Without it a
 * burst finds the same room for each of its requests.
 */
export class Admissions {
  // A Map keeps insertion order: the oldest first.
  private readonly since = new Map<Asker, number>();
  private readonly sources = new Map<string, number>();

  constructor(private readonly keepMs: number) {}

  /** How many are still awaited. */
  count(): number {
    const lapsed = performance.now() - this.keepMs;
    for (const [asker, at] of this.since) {
      if (at > lapsed) break;
      this.delete(asker);
    }
    return this.since.size;
  }

  /** How many of one source. */
  of(source: string): number {
    return this.sources.get(source) ?? 0;
  }

  /** Whether more than `than` of some source are awaited. */
  hasHeavier(than: number): boolean {
    for (const count of this.sources.values()) if (count > than) return true;
    return false;
  }

  add(asker: Asker): void {
    this.delete(asker);
    this.since.set(asker, performance.now());
    this.sources.set(asker.network, this.of(asker.network) + 1);
  }

  /** It has come, or will not. */
  delete(asker: Asker): void {
    if (!this.since.delete(asker)) return;
    const left = this.of(asker.network) - 1;
    if (left > 0) this.sources.set(asker.network, left);
    else this.sources.delete(asker.network);
  }
}
