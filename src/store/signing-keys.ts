import type { Queryable } from './mysql.js';

export interface StoredKey {
  kid: string;
  /** The algorithm that this key signs with now; null once it is retired. */
  slot: string | null;
  alg: string;
  /** SPKI, PEM. */
  publicKey: string;
  /** PKCS #8 PEM, sealed. */
  privateKey: Buffer;
}

export const listSigningKeys = (on: Queryable): Promise<StoredKey[]> =>
  on.rows<StoredKey>('SELECT kid, slot, alg, public_key AS publicKey, private_key AS privateKey FROM signing_keys');

/** Stores a key unless another node was first to fill its slot. */
export async function insertSigningKey(on: Queryable, key: StoredKey): Promise<void> {
  await on.run('INSERT IGNORE INTO signing_keys (kid, slot, alg, public_key, private_key) VALUES (?, ?, ?, ?, ?)', [key.kid, key.slot, key.alg, key.publicKey, key.privateKey]);
}
