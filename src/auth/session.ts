import { Type, type Static } from '@sinclair/typebox';
import { v7 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import { json, type Call, type Reply } from '../http/call.js';
import { setCookie } from '../http/cookies.js';
import { issueXsrf } from '../http/csrf.js';
import { seconds } from '../http/fields.js';
import { sha256 } from '../keyring.js';
import type { NewSession } from '../store/sessions.js';
import { mintRefreshToken, newSecret, type MintedToken } from './refresh-token.js';

const DAY_MS = 24 * 3600 * 1000;

export const idleMs = (config: Pick<Deps['config'], 'sessionIdleDays'>): number => config.sessionIdleDays * DAY_MS;

/** A session that is about to exist: its ids and secret are chosen before anything is stored. */
export interface Draft {
  userId: string;
  amr: string[];
  refresh: MintedToken;
  /** The session ends after so long unless it is refreshed before, in ms; null: after its idle time. */
  firstUseMs: number | null;
}

export function draftSession(keyring: Deps['keyring'], userId: string, amr: string[], firstUseMs: number | null = null): Draft {
  return { userId, amr, firstUseMs, refresh: mintRefreshToken(keyring, uuid(), 0, newSecret()) };
}

/** The row of a drafted session; `device` is what its owner knows the device by. */
export function sessionRow(config: Deps['config'], draft: Draft, call: Pick<Call, 'ip'>, device: string | null): NewSession {
  return {
    id: draft.refresh.sessionId,
    userId: draft.userId,
    secretHash: sha256(draft.refresh.secret),
    amr: draft.amr,
    device: device?.slice(0, 255) ?? null,
    ip: call.ip,
    // The first refresh gives it the idle time, as every refresh does.
    idleMs: Math.min(draft.firstUseMs ?? Infinity, idleMs(config)),
    absoluteMs: config.sessionAbsoluteDays * DAY_MS,
  };
}

/** What is left of a new session, in ms. */
export const newSessionMs = (config: Deps['config'], { firstUseMs }: Pick<Draft, 'firstUseMs'>): number => Math.min(firstUseMs ?? Infinity, Math.min(config.sessionIdleDays, config.sessionAbsoluteDays) * DAY_MS);

/** What a client is given. Durations in seconds. */
export interface Tokens {
  accessToken: string;
  refresh: MintedToken;
  expiresIn: number;
  refreshExpiresIn: number;
}

/** Lifetimes of what a client is given for a session with so much left, in seconds. */
export function lifetimes(config: Pick<Deps['config'], 'accessTtlS'>, leftMs: number): Pick<Tokens, 'expiresIn' | 'refreshExpiresIn'> {
  const refreshExpiresIn = Math.max(0, Math.floor(leftMs / 1000));
  return { refreshExpiresIn, expiresIn: Math.min(config.accessTtlS, Math.max(1, refreshExpiresIn)) };
}

const InBody = Type.Object(
  {
    accessToken: Type.String({ description: 'A JWT (RFC 9068) for the Authorization header.', examples: ['eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9.e30.c2ln'] }),
    refreshToken: Type.String({ description: 'Good for one refresh.', examples: ['r1.AZj0onweuw'] }),
    jti: Type.String({ description: 'Names the refresh token; may be sent along with it.', examples: ['yq0b3u1kQhO0fWxj'] }),
    tokenType: Type.Literal('Bearer'),
    expiresIn: seconds('Life of the access token, in seconds.', 900),
    refreshExpiresIn: seconds('What is left of the session, in seconds.', 1209600),
  },
  { title: 'Tokens', description: 'json mode: everything is in the body, and no cookie is set.' },
);
const InCookies = Type.Object({ ok: Type.Literal(true) }, { title: 'TokensInCookies', description: 'cookie mode: everything is in the four cookies, and the XSRF value in X-XSRF-Token too.' });

/** What `deliver` answers. */
export const Delivered = Type.Union([InBody, InCookies], { description: 'Tokens, in the way that the client asked for.' });

/** Tokens in the way that the client asked for: all in the body, or all in cookies. */
export function deliver({ config, keyring }: Pick<Deps, 'config' | 'keyring'>, call: Pick<Call, 'delivery'>, tokens: Tokens): Reply<200, Static<typeof Delivered>> {
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
