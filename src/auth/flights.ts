/** Work under way on this node by name: whoever comes before its outcome is known shares it. */
export interface Flights<T> {
  join(name: string, fly: () => Promise<T>): Promise<T>;
}

export function createFlights<T>(): Flights<T> {
  const underWay = new Map<string, Promise<T>>();
  return {
    join(name, fly) {
      const known = underWay.get(name);
      if (known) return known;
      // Landed means decided: who comes later is judged by how late.
      const flight = fly().finally(() => underWay.delete(name));
      underWay.set(name, flight);
      return flight;
    },
  };
}
