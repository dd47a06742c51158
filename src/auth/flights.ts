import type { Outcome } from './refresh.js';

/** Refreshes under way on this node by token: whoever comes before the outcome is known shares it. */
export interface Flights {
  join(token: string, fly: () => Promise<Outcome>): Promise<Outcome>;
}

export function createFlights(): Flights {
  const underWay = new Map<string, Promise<Outcome>>();
  return {
    join(token, fly) {
      const known = underWay.get(token);
      if (known) return known;
      // Landed means committed: who comes later is judged by how late.
      const flight = fly().finally(() => underWay.delete(token));
      underWay.set(token, flight);
      return flight;
    },
  };
}
