import { randomBytes } from 'node:crypto';
import { ApiError } from '../errors.js';
import { equal, type Keyring } from '../keyring.js';
import type { Call } from './call.js';
import { COOKIES } from './cookies.js';

const RANDOM = 16;

/** A new XSRF-TOKEN value: random bytes and their HMAC with the session, so that it proves which session it belongs to. */
export function issueXsrf(keyring: Keyring, sessionId: string): string {
  const random = randomBytes(RANDOM);
  return Buffer.concat([random, keyring.mac('csrf', sessionId, random)]).toString('base64url');
}

/** Whether an XSRF-TOKEN value was issued for the session; constant time. */
export function isXsrfOf(keyring: Keyring, sessionId: string, value: string): boolean {
  const bytes = Buffer.from(value, 'base64url');
  if (bytes.length !== RANDOM + 32) return false;
  return keyring.proves('csrf', bytes.subarray(RANDOM), sessionId, bytes.subarray(0, RANDOM));
}

/**
 * The double-submit check: X-XSRF-Token equals the XSRF-TOKEN cookie, which belongs to the session.
 * @param sessionId null when the credential names no session: then only equality can be asked
 * @throws ApiError CSRF_FAILED
 */
export function demandXsrf(keyring: Keyring, call: Call, sessionId: string | null): void {
  const header = call.headers.get('x-xsrf-token');
  const cookie = call.cookies.get(COOKIES.xsrf.name);
  const once = !call.headers.twice('x-xsrf-token') && !call.tossed.has(COOKIES.xsrf.name);
  if (!once || !header || !cookie || !equal(Buffer.from(header), Buffer.from(cookie))) throw new ApiError('CSRF_FAILED');
  if (sessionId !== null && !isXsrfOf(keyring, sessionId, cookie)) throw new ApiError('CSRF_FAILED');
}

/**
 * Refuses requests that a browser says come from a foreign site.
 * @param tls whether clients reach the service by TLS for certain
 * @throws ApiError CSRF_FAILED
 */
export function demandOwnSite(call: Call, allowed: readonly string[], tls: boolean): void {
  if (call.headers.get('sec-fetch-site')?.includes('cross-site')) throw new ApiError('CSRF_FAILED');
  const origin = call.headers.get('origin');
  if (origin === undefined || allowed.includes(origin)) return;
  const host = call.headers.get('host') ?? '';
  const own = origin === `https://${host}` || (!tls && origin === `http://${host}`);
  if (!own || call.headers.twice('origin')) throw new ApiError('CSRF_FAILED');
}
