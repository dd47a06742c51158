import type { Headers } from './call.js';

/**
 * Whether two readers could see the end of the request at different places (RFC 9112 §6.3): the way of request
 * smuggling. uWebSockets.js takes the first of two lengths, any transfer coding as chunked and an empty length as none.
 */
export function isBadlyFramed(headers: Headers): boolean {
  const coding = headers.get('transfer-encoding');
  const length = headers.get('content-length');
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || length !== undefined)) return true;
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return true;
  // What two types announce, two readers may read differently too.
  return headers.twice('content-length') || headers.twice('content-type');
}
