/**
 * Turns many single reads of one event-loop turn into one: keys asked for within the turn are loaded
 * together, `most` at a time. A key that `load` leaves out gives null.
 */
export function coalesce<K, V>(load: (keys: K[]) => Promise<Map<K, V>>, most: number): (key: K) => Promise<V | null> {
  let waiting: { key: K; resolve: (value: V | null) => void; reject: (error: unknown) => void }[] = [];

  function flush(): void {
    const turn = waiting;
    waiting = [];
    for (let from = 0; from < turn.length; from += most) {
      const asked = turn.slice(from, from + most);
      load([...new Set(asked.map((one) => one.key))]).then(
        (found) => asked.forEach((one) => one.resolve(found.get(one.key) ?? null)),
        (error: unknown) => asked.forEach((one) => one.reject(error)),
      );
    }
  }

  return (key) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ key, resolve, reject });
    });
}
