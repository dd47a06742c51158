import type { HashCost } from './protocol.js';

/** What a stored password hash says of itself. */
export type Phc = { scheme: 'argon2'; variant: string; lanes: number; cost: HashCost } | { scheme: 'bcrypt'; rounds: number };

/** Dearer hashes are not computed: one row must not be able to stop a hashing thread. */
const MOST = { memoryKib: 256 * 1024, work: 2 * 1024 * 1024, lanes: 16, rounds: 14 };

/** Reads a PHC argon2 string or a bcrypt string; null when it is neither or costs more than a thread may spend. */
export function readPhc(hash: string): Phc | null {
  const argon2 = /^\$(argon2(?:id|i|d))\$v=19\$m=(\d{1,8}),t=(\d{1,8}),p=(\d{1,3})\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{22,}$/.exec(hash);
  if (argon2) {
    const [memoryKib, passes, lanes] = [Number(argon2[2]), Number(argon2[3]), Number(argon2[4])];
    if (memoryKib > MOST.memoryKib || memoryKib * passes > MOST.work || lanes < 1 || lanes > MOST.lanes || passes < 1) return null;
    return { scheme: 'argon2', variant: argon2[1]!, lanes, cost: { memoryKib, passes } };
  }
  const bcrypt = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash);
  if (!bcrypt) return null;
  const rounds = Number(bcrypt[1]);
  return rounds < 4 || rounds > MOST.rounds ? null : { scheme: 'bcrypt', rounds };
}

/** Whether a hash is of an older scheme or cheaper than the cost set now. */
export function isOutdated(phc: Phc, cost: HashCost): boolean {
  return phc.scheme !== 'argon2' || phc.variant !== 'argon2id' || phc.cost.memoryKib < cost.memoryKib || phc.cost.passes < cost.passes;
}
