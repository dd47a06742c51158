import type { HashCost } from './protocol.js';

/** What a stored password hash says of itself. */
export type Phc = { scheme: 'argon2'; variant: string; lanes: number; cost: HashCost } | { scheme: 'bcrypt'; rounds: number };

/** Dearer hashes are not computed: one row must not be able to stop a hashing thread. */
const MOST = { memoryKib: 256 * 1024, work: 2 * 1024 * 1024, lanes: 16, rounds: 14 };

/** Spellings that engines differ on, or that none takes, are refused: no leading zeros, no spare bits set. */
const ARGON2 = /^\$(argon2(?:id|i|d))\$v=19\$m=([1-9]\d{0,7}),t=([1-9]\d{0,7}),p=([1-9]\d{0,2})\$([A-Za-z0-9+/]{11,})\$([A-Za-z0-9+/]{22,})$/;
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{30}[.CGKOSWaeimquy26]$/;

/** Reads a PHC argon2 string or a bcrypt string; null when it is neither or costs more than a thread may spend. */
export function readPhc(hash: string): Phc | null {
  const argon2 = ARGON2.exec(hash);
  if (argon2) {
    const [memoryKib, passes, lanes] = [Number(argon2[2]), Number(argon2[3]), Number(argon2[4])];
    const isTooDear = memoryKib > MOST.memoryKib || memoryKib * passes > MOST.work || lanes > MOST.lanes;
    // RFC 9106 §3.1: at least 8 KiB a lane.
    if (isTooDear || memoryKib < 8 * lanes || !isBase64(argon2[5]!) || !isBase64(argon2[6]!)) return null;
    return { scheme: 'argon2', variant: argon2[1]!, lanes, cost: { memoryKib, passes } };
  }
  const bcrypt = BCRYPT.exec(hash);
  if (!bcrypt) return null;
  const rounds = Number(bcrypt[1]);
  return rounds < 4 || rounds > MOST.rounds ? null : { scheme: 'bcrypt', rounds };
}

const isBase64 = (text: string): boolean => Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text;

/** Whether a hash is of an older scheme or cheaper than the cost set now. */
export function isOutdated(phc: Phc, cost: HashCost): boolean {
  return phc.scheme !== 'argon2' || phc.variant !== 'argon2id' || phc.cost.memoryKib < cost.memoryKib || phc.cost.passes < cost.passes;
}
