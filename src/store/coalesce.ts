import { gather, type GatherOptions } from './gather.js';
import { padded } from './mysql.js';

/** Statements under way for one kind of read: a second one goes out while the first is answered. */
const LANES = 2;

/**
 * Turns many single reads of one event-loop turn into one: keys asked for within the turn are loaded
 * together, `most` at a time, each once; '' may stand among them and names nothing. A key that `load` leaves out gives null.
 */
export function coalesce<V>(load: (keys: string[]) => Promise<Map<string, V>>, most: number, onBatch?: GatherOptions['onBatch']): (key: string) => Promise<V | null> {
  return gather<string, V | null>(
    async (keys) => {
      const found = await load(padded([...new Set(keys)], ''));
      return keys.map((key) => found.get(key) ?? null);
    },
    { most, lanes: LANES, onBatch },
  );
}
