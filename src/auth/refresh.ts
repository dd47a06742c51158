import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { endpoint } from '../http/endpoint.js';
import type { Call } from '../http/call.js';
import { clearCookies, COOKIES } from '../http/cookies.js';
import { sha256, subjectOf } from '../keyring.js';
import { record, whence } from '../store/audit.js';
import { appendEvent } from '../store/outbox.js';
import { revoke, type RefreshState, type Rotation } from '../store/sessions.js';
import { accessTokenJob } from './access-token.js';
import { hasJti, mintRefreshToken, newSecret, openSuccessor, readRefreshToken, sealSuccessor, type MintedToken, type RefreshToken } from './refresh-token.js';
import { deliver, Delivered, lifetimes, type Tokens } from './session.js';
import type { Flights } from './flights.js';
import { judge, judgeFormer, type Arrival, type RefreshCode } from './refresh-verdict.js';

export type RefreshNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'metrics' | 'mysql' | 'clock' | 'limits' | 'signing' | 'signingKeys' | 'events'> & {
  flights: Flights<Outcome>;
  /** Reads a session, and makes a new secret the newest; both together with those of other refreshes. */
  refreshState: (sessionId: string) => Promise<RefreshState | null>;
  rotate: (rotation: Rotation) => Promise<boolean>;
};

const body = Type.Object({
  refreshToken: Type.String({ maxLength: 512, examples: ['r1.AZj0onweuw'] }),
  jti: Type.Optional(Type.String({ maxLength: 128, description: 'If sent, it must belong to the token.', examples: ['yq0b3u1kQhO0fWxj'] })),
});

/** POST /api/auth/refresh: the newest refresh token for its successor. Body in json mode, cookies in cookie mode, never mixed. */
export const refresh = endpoint({
  tag: 'Signing in',
  summary: 'Exchange the newest refresh token for its successor',
  description: 'In json mode the token is read from the body alone, in cookie mode from the cookies alone. A token that was replaced a while ago ends its session.',
  body,
  bareInCookieMode: true,
  replies: { 200: Delivered },
  errors: [
    'REFRESH_SESSION_NOT_FOUND',
    'REFRESH_TOKEN_INVALID',
    'REFRESH_SESSION_REVOKED',
    'REFRESH_SESSION_DELETED',
    'REFRESH_SESSION_EXPIRED',
    'REFRESH_USER_NOT_FOUND',
    'REFRESH_USER_INACTIVE',
  ],
  handle: async (needs: RefreshNeeds, call) => {
    const sent = call.delivery === 'json' ? call.body : cookiesOf(call);
    const token = sentToken(needs.keyring, call, sent.refreshToken);
    if (!token) throw refused(needs, call, 'REFRESH_TOKEN_INVALID');
    await needs.limits.hit('refresh-session', token.sessionId);
    if (sent.jti !== undefined && !hasJti(needs.keyring, token, sent.jti)) return mismatched(needs, call, token);
    const outcome = await needs.flights.join(token.text, () => rotateOnce(needs, token));
    if (outcome.kind === 'judged') throw refused(needs, call, outcome.code);
    const tokens = outcome.kind === 'won' ? await outcome.tokens : await succeedLate(needs, call, token, outcome);
    needs.metrics.refreshes.inc({ outcome: outcome.kind === 'won' ? 'rotated' : 'converged' });
    return deliver(needs, call, tokens);
  },
});

const cookiesOf = (call: Call): { refreshToken: string; jti?: string } => {
  const jti = call.cookies.get(COOKIES.jti.name);
  return { refreshToken: call.cookies.get(COOKIES.refresh.name) ?? '', ...(jti === undefined ? {} : { jti }) };
};

/** The token that was sent, or null when it is none or stands twice. */
function sentToken(keyring: Deps['keyring'], call: Call, text: string): RefreshToken | null {
  if (call.delivery === 'cookie' && (call.tossed.has(COOKIES.refresh.name) || call.tossed.has(COOKIES.jti.name))) return null;
  return readRefreshToken(keyring, text);
}

/** A token beside the jti of another is never exchanged, but a replaced one is still a sign of theft. */
async function mismatched(needs: RefreshNeeds, call: Call, token: RefreshToken): Promise<never> {
  const seen = await look(needs, token, sha256(token.secret));
  if (seen.kind === 'former' && judgeFormer(seen.session, token, arrivalOf(call, seen), 0) === 'reuse') await endReused(needs, call, seen.session);
  throw refused(needs, call, 'REFRESH_TOKEN_INVALID');
}

/** The session that a refresh cookie names; nothing is looked up. */
export function refreshSession(keyring: Deps['keyring'], call: Call): string | null {
  return readRefreshToken(keyring, cookiesOf(call).refreshToken)?.sessionId ?? null;
}

export type Outcome =
  | { kind: 'won'; tokens: Promise<Tokens> }
  | { kind: 'judged'; code: RefreshCode }
  /** The token is not the newest; by performance.now(), when it was last known to be. */
  | { kind: 'former'; session: RefreshState; newestAt: number };

/** Rotates if the token is the newest. Whoever wins is decided in `rotate`, the one conditional statement. */
async function rotateOnce(needs: RefreshNeeds, token: RefreshToken): Promise<Outcome> {
  const { keyring } = needs;
  const fromHash = sha256(token.secret);
  const seen = await look(needs, token, fromHash);
  if (seen.kind !== 'newest') return seen;
  // A node that cannot sign now must say so before the token is spent.
  needs.signingKeys.current();
  const secret = newSecret();
  const won = await needs.rotate({ id: token.sessionId, fromGeneration: token.generation, fromHash, toHash: sha256(secret), seal: sealSuccessor(keyring, token, secret) });
  if (won) return { kind: 'won', tokens: issue(needs, seen.session, mintRefreshToken(keyring, token.sessionId, token.generation + 1, secret)) };
  const again = await look(needs, token, fromHash);
  // Neither rotated by another nor ended: the account was away for a moment between the two statements.
  if (again.kind === 'newest') throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
  return again.kind === 'former' ? { ...again, newestAt: seen.session.askedAt } : again;
}

type Seen = Exclude<Outcome, { kind: 'won' }> | { kind: 'newest'; session: RefreshState };

async function look({ refreshState }: RefreshNeeds, token: RefreshToken, hash: Buffer): Promise<Seen> {
  const session = await refreshState(token.sessionId);
  const code = judge(session, hash);
  if (code === 'REFRESH_TOKEN_INVALID') return { kind: 'former', session: session!, newestAt: -Infinity };
  return code === null ? { kind: 'newest', session: session! } : { kind: 'judged', code };
}

async function issue(needs: RefreshNeeds, session: RefreshState, refresh: MintedToken): Promise<Tokens> {
  const lives = lifetimes(needs.config, session.leftMs);
  const { amr, authTime } = session;
  const job = accessTokenJob(needs, { userId: session.userId!, sessionId: session.id, roles: session.user!.roles, amr, authTime, expiresIn: lives.expiresIn });
  return { accessToken: await needs.signing.sign(job), refresh, ...lives };
}

type Former = Extract<Outcome, { kind: 'former' }>;

/** When a call came, against the newest rotation. Each span is measured by one clock, so that clocks which disagree change nothing; the store read its own between the two. */
function arrivalOf(call: Call, { session, newestAt }: Former): Arrival {
  const rotatedMsAgo = session.rotatedMsAgo ?? Infinity;
  return { earliest: rotatedMsAgo - (session.readAt - call.receivedAt), latest: rotatedMsAgo - (session.askedAt - call.receivedAt), wasNewest: call.receivedAt <= newestAt };
}

/** The same successor for a request that was under way when another one won; everybody else is refused. */
async function succeedLate(needs: RefreshNeeds, call: Call, token: RefreshToken, former: Former): Promise<Tokens> {
  const { session } = former;
  const verdict = judgeFormer(session, token, arrivalOf(call, former), needs.config.refreshGraceMs);
  if (verdict === 'reuse') await endReused(needs, call, session);
  const alive = judge(session, session.secretHash) === null;
  if (verdict !== 'successor' || !alive || !session.successorSeal) throw refused(needs, call, 'REFRESH_TOKEN_INVALID', verdict);
  const secret = openSuccessor(needs.keyring, token, session.successorSeal, session.secretHash);
  if (!secret) throw refused(needs, call, 'REFRESH_TOKEN_INVALID', 'unknown');
  return issue(needs, session, mintRefreshToken(needs.keyring, session.id, session.generation, secret));
}

/** Somebody holds a token that its owner has long replaced: the session ends for both (RFC 9700 §4.14.2). */
async function endReused({ mysql, keyring, clock, events, log }: RefreshNeeds, call: Call, session: RefreshState): Promise<void> {
  const { userId } = session;
  if (userId === null) return;
  const subject = subjectOf(keyring, userId);
  const revoked = await mysql.transaction(async (tx) => {
    if (!(await revoke(tx, session.id, 'reuse'))) return false;
    await record(tx, { userId, subject, action: 'refresh.reuse', status: 'failure', ...whence(call), sessionId: session.id });
    await appendEvent(tx, 'identity.session.reuse_detected', { userId, sessionId: session.id }, new Date(clock.now()));
    return true;
  });
  if (!revoked) return;
  events.wake();
  log.warn({ requestId: call.requestId, subject, ip: call.ip }, 'a replaced refresh token was used: session revoked');
}

function refused({ config, metrics }: RefreshNeeds, call: Call, code: RefreshCode, verdict?: string): ApiError {
  metrics.refreshes.inc({ outcome: verdict === 'reuse' ? 'reuse' : code.slice('REFRESH_'.length).toLowerCase() });
  // A forgiven client holds the successor already, or is about to: its cookies are not ours to clear.
  const cookies = call.delivery === 'cookie' && verdict !== 'forgiven' ? clearCookies(config.cookieDomainXsrf) : [];
  return new ApiError(code, {}, {}, cookies);
}
