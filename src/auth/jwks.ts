import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { answer, type Call, type Reply } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { KEY_TIMES } from './key-times.js';
import type { SigningKeys } from './signing-keys.js';

const CACHE_CONTROL = `public, max-age=${Math.floor(KEY_TIMES.maxAgeMs / 1000)}`;

const headers = { 'Cache-Control': `How long the set may be kept: ${CACHE_CONTROL}.`, 'ETag': 'Names this set, for If-None-Match.' };

/** RFC 7517 §4, RFC 7518 §6. */
const Jwk = Type.Object({
  kid: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', examples: ['NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs'], description: 'Its thumbprint (RFC 7638); the kid of tokens that it signs.' }),
  kty: Type.String({ examples: ['EC'] }),
  alg: Type.Union([Type.Literal('ES256'), Type.Literal('EdDSA'), Type.Literal('RS256')]),
  use: Type.Literal('sig'),
  crv: Type.Optional(Type.String()),
  x: Type.Optional(Type.String()),
  y: Type.Optional(Type.String()),
  n: Type.Optional(Type.String()),
  e: Type.Optional(Type.String()),
});

/** GET /.well-known/jwks.json: the public keys of all tokens that are valid now or may be soon (RFC 7517 §5). */
export const jwks = endpoint({
  tag: 'Keys',
  summary: 'Public keys that verify access tokens',
  description: 'The key that signs comes first. Keys stand here for an hour before they sign, so that a kept set never lacks one.',
  replies: {
    200: { body: Type.Object({ keys: Type.Array(Jwk) }), description: 'The key set.', headers },
    304: { body: null, description: 'The set that If-None-Match names is still the present one.', headers },
  },
  errors: [],
  handle: ({ signingKeys }: Pick<Deps, 'signingKeys'>, call) => Promise.resolve(show(signingKeys, call)),
});

/** @throws ApiError UNAVAILABLE when the set is too old to be kept for so long */
function show(signingKeys: SigningKeys, call: Call): Reply<200, never> | Reply<304, null> {
  const { body, etag, ageMs } = signingKeys.published();
  // A copy of an older set could still be in use when a key signs that it lacks.
  if (ageMs > KEY_TIMES.servedMs) throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
  const keeping = { 'Cache-Control': CACHE_CONTROL, 'ETag': etag };
  if (names(call.headers.get('if-none-match'), etag)) return { status: 304, headers: keeping };
  return answer(200, { headers: { ...keeping, 'Content-Type': 'application/json; charset=utf-8' }, body });
}

/** Whether If-None-Match names the tag; weak and strong ones count alike (RFC 9110 §13.1.2). */
const names = (header: string | undefined, etag: string): boolean => header?.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag) ?? false;
