import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import type { SigningJob } from './protocol.js';

/** Keys read already, by kid: to read one costs as much as to sign. */
const keys = new Map<string, KeyObject>();
/** One signs at a time; a job that waited may still ask for its predecessor. */
const MOST_KEYS = 4;

/**
 * Signs an access token (RFC 9068: typ at+jwt) and gives its compact form (RFC 7515 §3.1).
 * Synchronous: jose signs by WebCrypto, whose hop to another thread and back costs five times the signature.
 */
export function signJws({ alg, kid, privateKey, claims }: SigningJob): string {
  const key = keys.get(kid) ?? keep(kid, createPrivateKey(privateKey));
  const input = `${encode({ alg, kid, typ: 'at+jwt' })}.${encode(claims)}`;
  return `${input}.${signature(alg, Buffer.from(input), key).toString('base64url')}`;
}

function keep(kid: string, key: KeyObject): KeyObject {
  // A Map keeps insertion order: the oldest goes first.
  if (keys.size >= MOST_KEYS) keys.delete(keys.keys().next().value!);
  keys.set(kid, key);
  return key;
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** RFC 7518 §3.3 and §3.4, RFC 8037 §3.1. */
function signature(alg: SigningJob['alg'], input: Buffer, key: KeyObject): Buffer {
  if (alg === 'ES256') return sign('sha256', input, { key, dsaEncoding: 'ieee-p1363' });
  return alg === 'EdDSA' ? sign(null, input, key) : sign('sha256', input, key);
}
