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

/** When a request came: how long after the newest rotation, in ms, at the earliest and at the latest. Negative: it was under way then. */
export interface Arrival {
  earliest: number;
  latest: number;
  /** Whether its token was seen to be the newest after it had come: then it is slow, but replays nothing. */
  wasNewest: boolean;
}

/** What a token that is not the newest deserves. What it gets needs certainty: the successor, and the end of the session. */
export function judgeFormer(session: RefreshState, token: { generation: number }, { earliest, latest, wasNewest }: Arrival, graceMs: number): 'successor' | 'forgiven' | 'reuse' | 'unknown' {
  // Not below the newest and yet another: only a restored backup explains that.
  if (token.generation >= session.generation) return 'unknown';
  const isDirect = token.generation === session.generation - 1;
  if (wasNewest) return isDirect ? 'successor' : 'forgiven';
  if (!isDirect) return 'reuse';
  if (latest <= graceMs) return 'successor';
  return earliest <= FORGIVEN_MS ? 'forgiven' : 'reuse';
}
