import type { Queryable, Tx } from './mysql.js';

export type KeyState = 'next' | 'active' | 'retiring' | 'retired';

/** A key with its place in its life. All spans are measured by the clock of the database. */
export interface StoredKey {
  kid: string;
  state: KeyState;
  alg: string;
  /** SPKI, PEM. */
  publicKey: string;
  /** PKCS #8 PEM, sealed; null once the key has stopped signing. */
  privateKey: Buffer | null;
  /** The longest life of a token that may carry its signature, in seconds. */
  tokenLifeS: number;
  /** Whether it is to take over as soon as it may. */
  wanted: boolean;
  createdAt: Date;
  activatedAt: Date | null;
  retiringAt: Date | null;
  retiredAt: Date | null;
  /** How long ago it was shown first, and how long ago it began to sign, in ms. */
  shownMs: number;
  usedMs: number | null;
}

export interface NewKey {
  kid: string;
  /** The place that it takes. */
  state: 'next' | 'active';
  alg: string;
  publicKey: string;
  privateKey: Buffer;
  tokenLifeS: number;
  wanted: boolean;
}

const msSince = (column: string): string => `TIMESTAMPDIFF(MICROSECOND, ${column}, UTC_TIMESTAMP(3)) DIV 1000`;

/** Every key, the oldest first. */
export const listKeys = (on: Queryable): Promise<StoredKey[]> => select(on, '');

/** The same, and nobody else changes any until the end of the transaction. */
export const lockKeys = (tx: Tx): Promise<StoredKey[]> => select(tx, 'FOR UPDATE');

async function select(on: Queryable, lock: '' | 'FOR UPDATE'): Promise<StoredKey[]> {
  const rows = await on.rows<Omit<StoredKey, 'wanted'> & { wantedAt: Date | null }>(
    `SELECT kid, state, alg, public_key AS publicKey, private_key AS privateKey, token_life_s AS tokenLifeS, wanted_at AS wantedAt, created_at AS createdAt,
       activated_at AS activatedAt, retiring_at AS retiringAt, retired_at AS retiredAt, ${msSince('created_at')} AS shownMs, ${msSince('activated_at')} AS usedMs
     FROM signing_keys ORDER BY created_at, kid ${lock}`,
  );
  return rows.map(({ wantedAt, ...key }) => ({ ...key, wanted: wantedAt !== null }));
}

/** Stores a key unless its place is taken: of several nodes one succeeds. */
export async function insertKey(on: Queryable, key: NewKey): Promise<boolean> {
  const { affected } = await on.run(
    `INSERT IGNORE INTO signing_keys (kid, state, slot, alg, public_key, private_key, token_life_s, wanted_at, activated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ${key.wanted ? 'UTC_TIMESTAMP(3)' : 'NULL'}, ${key.state === 'active' ? 'UTC_TIMESTAMP(3)' : 'NULL'})`,
    [key.kid, key.state, key.state, key.alg, key.publicKey, key.privateKey, key.tokenLifeS],
  );
  return affected === 1;
}

/** Notes that tokens which live so long, in s, may be signed from now on. */
export async function raiseTokenLife(on: Queryable, seconds: number): Promise<void> {
  await on.run("UPDATE signing_keys SET token_life_s = ? WHERE state IN ('next', 'active') AND token_life_s < ?", [seconds, seconds]);
}

/** Ends the use of the key that signs; of several callers one succeeds. */
export async function stopSigning(tx: Tx, kid: string): Promise<boolean> {
  const { affected } = await tx.run("UPDATE signing_keys SET state = 'retiring', slot = NULL, private_key = NULL, retiring_at = UTC_TIMESTAMP(3) WHERE kid = ? AND state = 'active'", [kid]);
  return affected === 1;
}

/** Begins the use of the next key, if it has been shown for so long, in ms. */
export async function startSigning(tx: Tx, kid: string, leadMs: number): Promise<boolean> {
  const { affected } = await tx.run(
    `UPDATE signing_keys SET state = 'active', slot = 'active', wanted_at = NULL, activated_at = UTC_TIMESTAMP(3)
     WHERE kid = ? AND state = 'next' AND created_at <= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND`,
    [kid, leadMs * 1000],
  );
  return affected === 1;
}

/** Asks for the next key to take over as soon as it may. */
export async function want(on: Queryable, kid: string): Promise<void> {
  await on.run("UPDATE signing_keys SET wanted_at = COALESCE(wanted_at, UTC_TIMESTAMP(3)) WHERE kid = ? AND state = 'next'", [kid]);
}

const RETIRED = "state = 'retired', slot = NULL, private_key = NULL, wanted_at = NULL, retired_at = UTC_TIMESTAMP(3)";

/** Retires a key at once, if it is in this state; its tokens are invalid from then on. */
export async function retireNow(tx: Tx, kid: string, state: KeyState): Promise<boolean> {
  const { affected } = await tx.run(`UPDATE signing_keys SET ${RETIRED} WHERE kid = ? AND state = ?`, [kid, state]);
  return affected === 1;
}

/** Retires keys whose last token has ended for so long, in ms, and gives how many. */
export async function retireSpent(on: Queryable, holdMs: number): Promise<number> {
  const { affected } = await on.run(`UPDATE signing_keys SET ${RETIRED} WHERE state = 'retiring' AND retiring_at <= UTC_TIMESTAMP(3) - INTERVAL (token_life_s * 1000000 + ?) MICROSECOND`, [holdMs * 1000]);
  return affected;
}

/** Forgets keys that were retired so many days ago. */
export async function deleteRetired(on: Queryable, days: number): Promise<void> {
  await on.run("DELETE FROM signing_keys WHERE state = 'retired' AND retired_at < UTC_TIMESTAMP(3) - INTERVAL ? DAY", [days]);
}
