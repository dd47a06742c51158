/**
 * The times of a signing key's life, in ms. A verifier never meets a key that its copy of the key set lacks, since a
 * copy is at most `servedMs` + `maxAgeMs` behind and a new key signs `leadMs` after it was stored. A token never
 * outlives its key, since a node signs with what it read at most `trustMs` ago and a key stays `holdMs` longer than its
 * last token can.
 */
export const KEY_TIMES = {
  /** For so long verifiers may keep the key set: Cache-Control. */
  maxAgeMs: 300_000,
  /** For so long a node that cannot read the keys shows those it read last. */
  servedMs: 2_700_000,
  /**
   * For so long a key is shown before it signs, from the statement that stores it. What is left of it beside the two
   * above is for its commit, and for verifiers that keep the set for ten minutes.
   */
  leadMs: 3_600_000,
  /** For so long a node signs by what it read last. */
  trustMs: 300_000,
  /** A key that stopped signing is kept for the life of a token and so much more: for `trustMs`, and clocks that differ. */
  holdMs: 900_000,
  /** How often each node reads the keys. */
  pollMs: 2_000,
  /** How soon the keys may be read again for a key that is not known. */
  rereadMs: 250,
  /** When one of the nodes looks what is due: a cron expression. */
  upkeepAt: '* * * * *',
};

export type KeyTimes = typeof KEY_TIMES;
