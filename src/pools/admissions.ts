/**
 * Who was let in and has not come yet: a place is theirs until they come, or until it lapses, since not everybody who
 * was let in comes. Without it a burst finds the same room for each of its requests.
 */
export class Admissions<Asker> {
  // A Map keeps insertion order: the oldest first.
  private readonly since = new Map<Asker, number>();

  constructor(private readonly keepMs: number) {}

  /** How many are still awaited. */
  count(): number {
    const lapsed = performance.now() - this.keepMs;
    for (const [asker, at] of this.since) {
      if (at > lapsed) break;
      this.since.delete(asker);
    }
    return this.since.size;
  }

  add(asker: Asker): void {
    this.since.delete(asker);
    this.since.set(asker, performance.now());
  }

  /** It has come. */
  delete(asker: Asker): void {
    this.since.delete(asker);
  }
}
