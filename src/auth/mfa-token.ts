import { randomBytes } from 'node:crypto';
import { sha256 } from '../keyring.js';

/** How long a login may wait for its second factor, in ms. */
export const MFA_TOKEN_MS = 300_000;

/** A new token and the hash that is stored of it. */
export function newMfaToken(): { text: string; hash: Buffer } {
  const text = randomBytes(32).toString('base64url');
  return { text, hash: sha256(text) };
}
