import { calculateJwkThumbprint, exportJWK, exportPKCS8, exportSPKI, generateKeyPair } from 'jose';
import type { Keyring } from '../keyring.js';
import type { NewKey } from '../store/signing-keys.js';

/** Of RS256; NIST SP 800-131A asks for no more until 2030, and longer keys make every signature dearer. */
const RSA_BITS = 2048;

/** A new key pair. Its kid is the thumbprint of the public key (RFC 7638); the private part is sealed. */
export async function makeKey(keyring: Keyring, alg: string): Promise<Pick<NewKey, 'kid' | 'alg' | 'publicKey' | 'privateKey'>> {
  const pair = await generateKeyPair(alg, { extractable: true, modulusLength: RSA_BITS });
  const kid = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
  const privateKey = keyring.seal('signing-key', Buffer.from(await exportPKCS8(pair.privateKey)), kid);
  return { kid, alg, publicKey: await exportSPKI(pair.publicKey), privateKey };
}

/**
 * The private part of a key, PKCS #8 PEM.
 * @throws when SECRET_KEY does not open it
 */
export function openKey(keyring: Keyring, { kid, privateKey }: { kid: string; privateKey: Buffer | null }): string {
  const opened = privateKey && keyring.open('signing-key', privateKey, kid);
  if (!opened) throw new WrongSecret();
  return opened.toString();
}

/** A stored signing key was sealed under a secret that is not accepted. */
export class WrongSecret extends Error {
  constructor() {
    super('a stored signing key cannot be opened: SECRET_KEY is not the one it was sealed with');
  }
}
