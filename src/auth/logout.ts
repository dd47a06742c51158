import type { Deps } from '../deps.js';
import { empty } from '../http/call.js';
import { CLEARING, endCookies } from '../http/cookies.js';
import { userEndpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { record, whence } from '../store/audit.js';
import { revoke } from '../store/sessions.js';

/** POST /api/auth/logout: revokes the session of the call, on every node at once. */
export const logout = userEndpoint({
  tag: 'Signing in',
  summary: 'End the session of the call',
  replies: { 204: { body: null, description: 'The session is revoked on every node.', headers: CLEARING } },
  errors: [],
  handle: async ({ mysql, keyring, config }: Pick<Deps, 'mysql' | 'keyring' | 'config'>, call) => {
    const { userId, sessionId } = call.principal;
    await mysql.transaction(async (tx) => {
      if (await revoke(tx, sessionId, 'logout')) await record(tx, { userId, subject: subjectOf(keyring, userId), action: 'logout', status: 'success', ...whence(call) });
    });
    return empty(endCookies(config, call));
  },
});
