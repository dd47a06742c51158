import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { empty, json } from '../http/call.js';
import { CLEARING, endCookies } from '../http/cookies.js';
import { ID, userEndpoint } from '../http/endpoint.js';
import { Id, OrNull, time } from '../http/fields.js';
import { subjectOf } from '../keyring.js';
import { record, whence } from '../store/audit.js';
import { listLive, MOST_LISTED, revokeOthers, revokeOwn } from '../store/sessions.js';

type EndNeeds = Pick<Deps, 'config' | 'keyring' | 'mysql'>;

const Session = Type.Object({
  id: Id,
  createdAt: time(),
  lastUsedAt: time({ description: 'The newest refresh, or the login.' }),
  expiresAt: time(),
  device: OrNull(Type.String({ description: 'The name that the login gave, else browser and system.', examples: ['Firefox on Windows'] })),
  ipAddress: OrNull(Type.String({ description: 'Where the login came from.', examples: ['203.0.113.5'] })),
  current: Type.Boolean({ description: 'Whether it is the session of this call.' }),
});
const Sessions = Type.Object({ sessions: Type.Array(Session, { maxItems: MOST_LISTED }) }, { title: 'Sessions', description: `Live sessions, the newest first; no more than ${MOST_LISTED}.` });

/** GET /api/auth/sessions: where the caller is signed in, the newest first. */
export const sessions = userEndpoint({
  tag: 'Sessions',
  summary: 'Where the account is signed in',
  replies: { 200: Sessions },
  errors: [],
  handle: async ({ mysql }: Pick<Deps, 'mysql'>, call) => {
    const { userId, sessionId } = call.principal;
    const live = await listLive(mysql, userId);
    return json(200, { sessions: live.map((session) => ({ ...session, current: session.id === sessionId })) });
  },
});

/** DELETE /api/auth/sessions/{id}: signs one device out, on every node at once. What is not the caller's is not there. */
export const endSession = userEndpoint({
  tag: 'Sessions',
  summary: 'Sign one device out',
  description: 'The session of the call may end itself. One that has ended or is somebody else’s is answered like one that never was.',
  params: { id: ID },
  replies: { 204: { body: null, description: 'The session is revoked on every node; its own cookies are cleared.', headers: CLEARING } },
  errors: [],
  handle: async ({ config, keyring, mysql }: EndNeeds, call) => {
    const { userId, sessionId } = call.principal;
    const { id } = call.params;
    const current = id === sessionId;
    const ended = await mysql.transaction(async (tx) => {
      if (!(await revokeOwn(tx, userId, id, 'logout'))) return false;
      await record(tx, { userId, subject: subjectOf(keyring, userId), action: 'session.ended', status: 'success', ...whence(call), detail: { current } });
      return true;
    });
    if (!ended) throw new ApiError('NOT_FOUND');
    return empty(current ? endCookies(config, call) : {});
  },
});

/** DELETE /api/auth/sessions: signs every other device of the caller out. */
export const endOtherSessions = userEndpoint({
  tag: 'Sessions',
  summary: 'Sign every other device out',
  replies: { 204: { body: null, description: 'All sessions but that of the call are revoked on every node.' } },
  errors: [],
  handle: async ({ keyring, mysql }: EndNeeds, call) => {
    const { userId, sessionId } = call.principal;
    await mysql.transaction(async (tx) => {
      const ended = await revokeOthers(tx, userId, sessionId, 'logout');
      if (ended > 0) await record(tx, { userId, subject: subjectOf(keyring, userId), action: 'sessions.ended', status: 'success', ...whence(call), detail: { ended } });
    });
    return empty();
  },
});
