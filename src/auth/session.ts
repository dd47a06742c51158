import { v7 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import { json, type Call, type Reply } from '../http/call.js';
import { setCookie } from '../http/cookies.js';
import { issueXsrf } from '../http/csrf.js';
import { sha256 } from '../keyring.js';
import type { NewSession } from '../store/sessions.js';
import { signAccessToken } from './access-token.js';
import { mintRefreshToken, newSecret, type RefreshToken } from './refresh-token.js';

const DAY_MS = 24 * 3600 * 1000;

export const idleMs = (config: Pick<Deps['config'], 'sessionIdleDays'>): number => config.sessionIdleDays * DAY_MS;

/** A session that is about to exist: its ids and secret are chosen before anything is stored. */
export interface Draft {
  userId: string;
  amr: string[];
  refresh: RefreshToken;
}

export function draftSession(keyring: Deps['keyring'], userId: string, amr: string[]): Draft {
  return { userId, amr, refresh: mintRefreshToken(keyring, uuid(), 0, newSecret()) };
}

/** The row of a drafted session. */
export function sessionRow(config: Deps['config'], draft: Draft, call: Call, deviceName: string | undefined): NewSession {
  return {
    id: draft.refresh.sessionId,
    userId: draft.userId,
    secretHash: sha256(draft.refresh.secret),
    amr: draft.amr,
    device: (deviceName ?? call.userAgent).slice(0, 255) || null,
    ip: call.ip,
    idleMs: idleMs(config),
    absoluteMs: config.sessionAbsoluteDays * DAY_MS,
  };
}

/** What is left of a new session, in ms. */
export const newSessionMs = (config: Deps['config']): number => Math.min(config.sessionIdleDays, config.sessionAbsoluteDays) * DAY_MS;

/** What a client is given. Durations in seconds. */
export interface Tokens {
  accessToken: string;
  refresh: RefreshToken;
  expiresIn: number;
  refreshExpiresIn: number;
}

export async function signTokens(
  needs: Pick<Deps, 'config' | 'clock' | 'signing' | 'signingKeys'>,
  session: { userId: string; amr: string[]; roles: string[]; authTime: Date; refresh: RefreshToken; leftMs: number },
): Promise<Tokens> {
  const refreshExpiresIn = Math.max(0, Math.floor(session.leftMs / 1000));
  const expiresIn = Math.min(needs.config.accessTtlS, Math.max(1, refreshExpiresIn));
  const { userId, roles, amr, authTime, refresh } = session;
  const accessToken = await signAccessToken(needs, { userId, sessionId: refresh.sessionId, roles, amr, authTime, expiresIn });
  return { accessToken, refresh, expiresIn, refreshExpiresIn };
}

/** Tokens in the way that the client asked for: all in the body, or all in cookies. */
export function deliver({ config, keyring }: Pick<Deps, 'config' | 'keyring'>, call: Pick<Call, 'delivery'>, tokens: Tokens): Reply {
  const { accessToken, refresh, expiresIn, refreshExpiresIn } = tokens;
  if (call.delivery === 'json') {
    return json(200, { accessToken, refreshToken: refresh.text, jti: refresh.jti, tokenType: 'Bearer', expiresIn, refreshExpiresIn });
  }
  const xsrf = issueXsrf(keyring, refresh.sessionId);
  return json(200, { ok: true }, {
    headers: { 'X-XSRF-Token': xsrf },
    cookies: [
      setCookie('access', accessToken, expiresIn),
      setCookie('refresh', refresh.text, refreshExpiresIn),
      setCookie('jti', refresh.jti, refreshExpiresIn),
      setCookie('xsrf', xsrf, refreshExpiresIn, config.cookieDomainXsrf),
    ],
  });
}
