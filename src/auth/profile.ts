import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { json, type Reply } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';

/** GET /api/auth/profile: who the caller is. */
export const profile = userEndpoint({
  errors: [],
  handle: async ({ profile: read }: Pick<Deps, 'profile'>, call): Promise<Reply> => {
    const found = await read(call.principal.userId);
    // The account went between the two reads.
    if (!found) throw new ApiError('UNAUTHENTICATED');
    return json(200, { ...found, sessionId: call.principal.sessionId });
  },
});
