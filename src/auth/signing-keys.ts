import { exportPKCS8, exportSPKI, calculateJwkThumbprint, exportJWK, generateKeyPair, importSPKI, type CryptoKey } from 'jose';
import type { Config } from '../config/settings.js';
import type { Keyring } from '../keyring.js';
import type { Mysql } from '../store/mysql.js';
import { insertSigningKey, listSigningKeys, type StoredKey } from '../store/signing-keys.js';

export interface SigningKeys {
  /** The key that signs now. `privateKey` is PKCS #8, PEM. */
  current(): { kid: string; alg: Config['jwtAlg']; privateKey: string };
  /** The public key of a kid with its one algorithm, or null; a kid unknown to this node is looked up, at most every few seconds. */
  find(kid: string): Promise<{ alg: string; key: CryptoKey } | null>;
}

const RELOAD_MS = 5_000;

/** Loads the keys that all nodes share; the first node of all makes one. Private keys are sealed at rest. */
export async function loadSigningKeys(mysql: Mysql, keyring: Keyring, config: Pick<Config, 'jwtAlg'>): Promise<SigningKeys> {
  const alg = config.jwtAlg;
  const publicKeys = new Map<string, { alg: string; key: CryptoKey }>();
  let loadedAt = 0;

  async function load(): Promise<StoredKey[]> {
    const stored = await listSigningKeys(mysql);
    loadedAt = performance.now();
    for (const { kid, alg: keyAlg, publicKey } of stored) {
      if (!publicKeys.has(kid)) publicKeys.set(kid, { alg: keyAlg, key: await importSPKI(publicKey, keyAlg) });
    }
    return stored;
  }

  let current = (await load()).find((key) => key.slot === alg);
  if (!current) {
    await insertSigningKey(mysql, await makeKey(alg, keyring));
    current = (await load()).find((key) => key.slot === alg)!;
  }
  const opened = keyring.open('signing-key', current.privateKey, current.kid);
  if (!opened) throw new Error('the stored signing key cannot be opened: SECRET_KEY is not the one it was made with');
  const signer = { kid: current.kid, alg, privateKey: opened.toString() };

  return {
    current: () => signer,
    async find(kid) {
      if (!publicKeys.has(kid) && performance.now() - loadedAt > RELOAD_MS) await load();
      return publicKeys.get(kid) ?? null;
    },
  };
}

async function makeKey(alg: string, keyring: Keyring): Promise<StoredKey> {
  const pair = await generateKeyPair(alg, { extractable: true });
  const kid = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
  const privateKey = keyring.seal('signing-key', Buffer.from(await exportPKCS8(pair.privateKey)), kid);
  return { kid, slot: alg, alg, publicKey: await exportSPKI(pair.publicKey), privateKey };
}
