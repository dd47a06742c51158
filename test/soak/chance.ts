/** Chances that come the same again for the same seed. */
export interface Chance {
  /** From 0 up to, and without, 1. */
  next: () => number;
  pick: <T>(list: readonly T[]) => T;
}

/** Mulberry32: small, and good enough to choose by. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { next, pick: (list) => list[Math.floor(next() * list.length)]! };
}

/** Every item once in each round, in an order of chance: a short run meets as many as it can. */
export function* rounds<T>(list: readonly T[], chance: Chance): Generator<T, never> {
  for (;;) {
    const left = [...list];
    while (left.length > 0) yield left.splice(Math.floor(chance.next() * left.length), 1)[0]!;
  }
}
