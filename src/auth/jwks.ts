import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import type { Call, Reply } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { KEY_TIMES } from './key-times.js';
import type { SigningKeys } from './signing-keys.js';

const CACHE_CONTROL = `public, max-age=${Math.floor(KEY_TIMES.maxAgeMs / 1000)}`;

/** GET /.well-known/jwks.json: the public keys of all tokens that are valid now or may be soon (RFC 7517 §5). */
export const jwks = endpoint({
  errors: [],
  handle: ({ signingKeys }: Pick<Deps, 'signingKeys'>, call): Promise<Reply> => Promise.resolve(show(signingKeys, call)),
});

/** @throws ApiError UNAVAILABLE when the set is too old to be kept for so long */
function show(signingKeys: SigningKeys, call: Call): Reply {
  const { body, etag, ageMs } = signingKeys.published();
  // A copy of an older set could still be in use when a key signs that it lacks.
  if (ageMs > KEY_TIMES.servedMs) throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
  const headers = { 'Cache-Control': CACHE_CONTROL, 'ETag': etag };
  if (names(call.headers.get('if-none-match'), etag)) return { status: 304, headers };
  return { status: 200, headers: { ...headers, 'Content-Type': 'application/json; charset=utf-8' }, body };
}

/** Whether If-None-Match names the tag; weak and strong ones count alike (RFC 9110 §13.1.2). */
const names = (header: string | undefined, etag: string): boolean => header?.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag) ?? false;
