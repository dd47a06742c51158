/** Items waiting per source, taken from the sources in turn, so that one busy source delays only itself. */
export class FairQueue<T> {
  // A Map keeps insertion order: the first source is the next to be served.
  private readonly sources = new Map<string, T[]>();
  private count = 0;

  get size(): number {
    return this.count;
  }

  push(source: string, item: T): void {
    const items = this.sources.get(source);
    if (items) items.push(item);
    else this.sources.set(source, [item]);
    this.count += 1;
  }

  /** The oldest item of the source whose turn it is. */
  shift(): T | undefined {
    const next = this.sources.entries().next();
    if (next.done) return undefined;
    const [source, items] = next.value;
    const item = items.shift();
    this.sources.delete(source);
    if (items.length > 0) this.sources.set(source, items);
    this.count -= 1;
    return item;
  }

  /** How many items of one source wait. */
  waitingOf(source: string): number {
    return this.sources.get(source)?.length ?? 0;
  }

  /** Whether some source has more items waiting than `than`. */
  hasHeavier(than: number): boolean {
    for (const items of this.sources.values()) if (items.length > than) return true;
    return false;
  }

  /** Takes out the newest item of the source that has most, if that is more than `than`. */
  evictHeaviest(than: number): T | undefined {
    let heaviest: string | null = null;
    let most = than;
    for (const [source, items] of this.sources) {
      if (items.length <= most) continue;
      heaviest = source;
      most = items.length;
    }
    return heaviest === null ? undefined : this.pop(heaviest);
  }

  private pop(source: string): T | undefined {
    const items = this.sources.get(source)!;
    const item = items.pop();
    if (items.length === 0) this.sources.delete(source);
    this.count -= 1;
    return item;
  }

  /** Takes out every item that `expired` says yes to. */
  sweep(expired: (item: T) => boolean): T[] {
    const out: T[] = [];
    for (const [source, items] of this.sources) {
      const kept = items.filter((item) => !expired(item) || (out.push(item), false));
      if (kept.length === items.length) continue;
      if (kept.length > 0) this.sources.set(source, kept);
      else this.sources.delete(source);
    }
    this.count -= out.length;
    return out;
  }
}
