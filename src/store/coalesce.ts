import { gather, type GatherOptions } from './gather.js';
import { padded } from './mysql.js';

/**
 * Statements under way for one kind of read, and keys of each at most: the server works on one while the next fills
 * and those before are written out. Larger ones cost less each, but then service and server wait for each other.
 */
const LANES = 4;
const MOST = 16;

/**
 * Turns many single reads that come close together into one: keys are loaded together, each once; '' may stand among
 * them and names nothing. A key that `load` leaves out gives null.
 */
export function coalesce<V>(load: (keys: string[]) => Promise<Map<string, V>>, onBatch?: GatherOptions['onBatch']): (key: string) => Promise<V | null> {
  return gather<string, V | null>(
    async (keys) => {
      const found = await load(padded([...new Set(keys)], ''));
      return keys.map((key) => found.get(key) ?? null);
    },
    { most: MOST, lanes: LANES, onBatch },
  );
}
