import type { ErrorCode } from '../errors.js';
import { equal } from '../keyring.js';
import type { RefreshState } from '../store/sessions.js';

export type RefreshCode = Extract<ErrorCode, `REFRESH_${string}`>;

/** A direct predecessor is forgiven for so long: its client may just not have seen the reply yet. */
const FORGIVEN_MS = 2_000;

/**
 * Judges a session for the holder of its newest secret: the first thing that stands against it, or null.
 * Order as documented, so that its state is told to the holder of the secret alone.
 */
export function judge(session: RefreshState | null, hash: Buffer): RefreshCode | null {
  if (!session) return 'REFRESH_SESSION_NOT_FOUND';
  if (!equal(session.secretHash, hash)) return 'REFRESH_TOKEN_INVALID';
  if (session.deleted) return 'REFRESH_SESSION_DELETED';
  if (session.revoked) return 'REFRESH_SESSION_REVOKED';
  if (session.expired) return 'REFRESH_SESSION_EXPIRED';
  if (!session.user) return 'REFRESH_USER_NOT_FOUND';
  return session.user.active ? null : 'REFRESH_USER_INACTIVE';
}

/** When a request came. */
export interface Arrival {
  /** How long before it the newest rotation happened, in ms: negative when the request was already under way then. */
  age: number;
  /** Whether its token was seen to be the newest after it had come: then it is late, but nobody replays anything. */
  wasNewest: boolean;
}

/** What a token that is not the newest deserves. */
export function judgeFormer(session: RefreshState, token: { generation: number; genuine: boolean }, { age, wasNewest }: Arrival, graceMs: number): 'successor' | 'forgiven' | 'reuse' | 'unknown' {
  // A higher generation can only come from a restored backup; garbage must never end a session.
  if (!token.genuine || token.generation >= session.generation) return 'unknown';
  const isDirect = token.generation === session.generation - 1;
  if (wasNewest) return isDirect ? 'successor' : 'forgiven';
  if (!isDirect) return 'reuse';
  if (age <= graceMs) return 'successor';
  return age <= FORGIVEN_MS ? 'forgiven' : 'reuse';
}
