import { ERRORS, type ApiError } from '../errors.js';
import type { Reply } from './call.js';

/** An error as application/problem+json (RFC 9457), with the headers that its code calls for. */
export function problem(error: ApiError, requestId: string, headers: Record<string, string> = {}): Reply {
  const { status, title } = ERRORS[error.code];
  const { retryAfter } = error.extras;
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
      ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
      ...headers,
    },
    ...(error.cookies.length > 0 ? { cookies: error.cookies } : {}),
    body: JSON.stringify({ status, title, code: error.code, requestId, ...error.extras }),
  };
}
