/** The value below which `share` (0 to 1) of the sorted values lie; 0 for none. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!;
}

export const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

/** The middle value, or the mean of the two in the middle; 0 for none. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return 0;
  return Number.isInteger(middle) ? (sorted[middle - 1]! + sorted[middle]!) / 2 : sorted[Math.floor(middle)]!;
}

/** One figure over the rounds; a round in which it could not be taken is null. */
export interface Spread {
  median: number;
  lowest: number;
  highest: number;
  rounds: (number | null)[];
}

/** Null when no round has a value. */
export function spreadOf(rounds: readonly (number | null)[]): Spread | null {
  const values = rounds.filter((value) => value !== null);
  return values.length === 0 ? null : { median: median(values), lowest: Math.min(...values), highest: Math.max(...values), rounds: [...rounds] };
}

/** How much `values` rise or fall per step, by least squares. */
export function slope(values: readonly number[]): number {
  const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
  if (values.length < 2) return 0;
  const [middle, height] = [(values.length - 1) / 2, mean(values)];
  let [over, under] = [0, 0];
  values.forEach((value, n) => {
    over += (n - middle) * (value - height);
    under += (n - middle) ** 2;
  });
  return over / under;
}
