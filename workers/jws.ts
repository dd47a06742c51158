import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import type { SigningJob } from './protocol.js';

const keys = new Map<string, KeyObject>();

/**
 * Signs an access token (RFC 9068: typ at+jwt) and gives its compact form (RFC 7515 §3.1).
 * Synchronous: jose signs by WebCrypto, whose hop to another thread and back costs five times the signature.
 */
export function signJws({ alg, kid, privateKey, claims }: SigningJob): string {
  let key = keys.get(kid);
  if (!key) keys.set(kid, (key = createPrivateKey(privateKey)));
  const input = `${encode({ alg, kid, typ: 'at+jwt' })}.${encode(claims)}`;
  return `${input}.${signature(alg, Buffer.from(input), key).toString('base64url')}`;
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** RFC 7518 §3.3 and §3.4, RFC 8037 §3.1. */
function signature(alg: SigningJob['alg'], input: Buffer, key: KeyObject): Buffer {
  if (alg === 'ES256') return sign('sha256', input, { key, dsaEncoding: 'ieee-p1363' });
  return alg === 'EdDSA' ? sign(null, input, key) : sign('sha256', input, key);
}
