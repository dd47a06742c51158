// Verifies access tokens in your own service. It asks Portcullis for nothing but the public keys, every five minutes.
import { createRemoteJWKSet, jwtVerify } from 'jose';

const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', process.env['PORTCULLIS_URL']), { cacheMaxAge: 300_000 });
const rules = { issuer: 'portcullis', audience: 'portcullis', typ: 'at+jwt', algorithms: ['ES256', 'EdDSA', 'RS256'], requiredClaims: ['sub', 'sid', 'exp'] };

/** Who calls, by an Authorization header. Throws when the token is forged, expired or not for you. */
export async function callerOf(authorization: string): Promise<{ userId: string; roles: string[] }> {
  const { payload } = await jwtVerify(authorization.replace(/^Bearer /i, ''), keys, rules);
  return { userId: payload.sub!, roles: payload['roles'] as string[] };
}
