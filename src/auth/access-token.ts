import { decodeProtectedHeader, jwtVerify } from 'jose';
import { v4 as uuid } from 'uuid';
import type { Deps } from '../deps.js';

/** What an access token says; times in seconds since the epoch. */
export interface AccessClaims {
  sub: string;
  sid: string;
}

/** Longer tokens are not looked at. */
const LONGEST = 4096;
/** Header members that would let a token choose how it is verified. */
const REFUSED = ['crit', 'jku', 'jwk', 'x5u', 'x5c', 'b64'];
const TOLERANCE_S = 5;

/** Signs an access token (RFC 9068). `expiresIn` in seconds. */
export function signAccessToken(
  { config, clock, signing, signingKeys }: Pick<Deps, 'config' | 'clock' | 'signing' | 'signingKeys'>,
  token: { userId: string; sessionId: string; roles: string[]; amr: string[]; authTime: Date; expiresIn: number },
): Promise<string> {
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
  return signing.sign({ ...signingKeys.current(), claims });
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
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(clock.now()),
    });
    return typeof payload.sub === 'string' && typeof payload['sid'] === 'string' ? { sub: payload.sub, sid: payload['sid'] } : null;
  } catch (error) {
    // jose says no by throwing its own errors; anything else is a fault of ours and must be seen.
    if (isJoseError(error) || error instanceof TypeError) return null;
    throw error;
  }
}

const isJoseError = (error: unknown): boolean => error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_J');
