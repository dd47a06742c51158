import type { Deps } from '../deps.js';
import type { Call, Principal } from '../http/call.js';
import { COOKIES } from '../http/cookies.js';
import type { Reads } from '../http/endpoint.js';
import type { AccessClaims } from './access-token.js';

type Needs = Pick<Deps, 'liveSession' | 'liveProfile'> & { readToken: (text: string) => Promise<AccessClaims | null> };

/** The holder of the call's access credential: the Bearer header first, the cookie second. */
export async function authenticate(needs: Needs, call: Call, reads: Reads): Promise<Principal | null> {
  // Two values for one credential: whichever were picked, another reader might pick the other.
  if (call.headers.twice('authorization') || isTossed(call)) return null;
  const bearer = /^Bearer +([^\s,]+)$/i.exec(call.headers.get('authorization') ?? '')?.[1];
  if (bearer !== undefined) {
    const user = await holder(needs, bearer, reads);
    if (user) return { ...user, by: 'bearer' };
  }
  const cookie = call.cookies.get(COOKIES.access.name);
  if (cookie === undefined) return null;
  const user = await holder(needs, cookie, reads);
  return user && { ...user, by: 'cookie' };
}

const isTossed = (call: Call): boolean => [COOKIES.access, COOKIES.refresh, COOKIES.jti].some(({ name }) => call.tossed.has(name));

async function holder(needs: Needs, token: string, reads: Reads): Promise<Omit<Principal, 'by'> | null> {
  const claims = await needs.readToken(token);
  if (!claims) return null;
  // Read anew each time: a revocation holds from the moment it was answered, on every node.
  if (reads === 'profile') {
    const read = await needs.liveProfile(claims.sid);
    return read?.id === claims.sub ? { userId: claims.sub, sessionId: claims.sid, read } : null;
  }
  const session = await needs.liveSession(claims.sid);
  return session?.userId === claims.sub ? { userId: claims.sub, sessionId: claims.sid } : null;
}
