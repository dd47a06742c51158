import { decodeProtectedHeader, jwtVerify } from 'jose';
import { v4 as uuid } from 'uuid';
import type { SigningJob } from '../../workers/protocol.js';
import type { Deps } from '../deps.js';

/** What an access token says; times in seconds since the epoch. */
export interface AccessClaims {
  sub: string;
  sid: string;
  exp: number;
  /** The key that signed it. */
  kid: string;
}

/** Longer tokens are not looked at. */
const LONGEST = 4096;
/** Header members that would let a token choose how it is verified. */
const REFUSED = ['crit', 'jku', 'jwk', 'x5u', 'x5c', 'b64'];

/** What an access token is made of. `expiresIn` in seconds. */
export interface NewAccessToken {
  userId: string;
  sessionId: string;
  roles: string[];
  amr: string[];
  authTime: Date;
  expiresIn: number;
}

/** What has to be signed for an access token (RFC 9068). */
export function accessTokenJob({ config, clock, signingKeys }: Pick<Deps, 'config' | 'clock' | 'signingKeys'>, token: NewAccessToken): SigningJob {
  const iat = Math.floor(clock.now() / 1000);
  const claims = {
    iss: config.jwtIssuer,
    aud: config.jwtAudience,
    sub: token.userId,
    sid: token.sessionId,
    jti: uuid(),
    iat,
    exp: iat + token.expiresIn,
    roles: token.roles,
    amr: token.amr,
    auth_time: Math.floor(token.authTime.getTime() / 1000),
  };
  return { ...signingKeys.current(), claims };
}

/** The claims of a token that this service signed and that is current; null for every other text. */
export async function readAccessToken({ config, clock, signingKeys }: Pick<Deps, 'config' | 'clock' | 'signingKeys'>, text: string): Promise<AccessClaims | null> {
  if (text.length > LONGEST) return null;
  try {
    const header = decodeProtectedHeader(text);
    if (REFUSED.some((name) => name in header) || typeof header.kid !== 'string') return null;
    const key = await signingKeys.find(header.kid);
    if (!key) return null;
    const { payload } = await jwtVerify(text, key.key, {
      algorithms: [key.alg],
      typ: 'at+jwt',
      issuer: config.jwtIssuer,
      audience: config.jwtAudience,
      requiredClaims: ['sub', 'sid', 'exp', 'iat'],
      currentDate: new Date(clock.now()),
    });
    const { sub, sid, exp } = payload;
    return typeof sub === 'string' && typeof sid === 'string' && exp !== undefined ? { sub, sid, exp, kid: header.kid } : null;
  } catch (error) {
    // jose says no by throwing its own errors; anything else is a fault of ours and must be seen.
    if (isJoseError(error) || error instanceof TypeError) return null;
    throw error;
  }
}

/** Tokens remembered at most. */
const MOST_REMEMBERED = 10_000;

/**
 * Reads tokens and remembers the good ones, since a client sends the same token many times and a signature is dear
 * to check. Only the signature is remembered: whether the session lives is asked anew each time, and whether the key
 * still counts.
 */
export function createTokenReader(needs: Pick<Deps, 'config' | 'clock' | 'signingKeys'>): (text: string) => Promise<AccessClaims | null> {
  const good = new Map<string, AccessClaims>();
  return async (text) => {
    const known = good.get(text);
    if (known && known.exp > needs.clock.now() / 1000 && needs.signingKeys.knows(known.kid)) return known;
    good.delete(text);
    const claims = await readAccessToken(needs, text);
    if (!claims) return null;
    good.set(text, claims);
    // A Map keeps insertion order: the oldest goes first.
    if (good.size > MOST_REMEMBERED) good.delete(good.keys().next().value!);
    return claims;
  };
}

const isJoseError = (error: unknown): boolean => error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_J');
