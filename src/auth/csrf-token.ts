import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { json } from '../http/call.js';
import { COOKIES, setCookie } from '../http/cookies.js';
import { isXsrfOf, issueXsrf } from '../http/csrf.js';
import { userEndpoint } from '../http/endpoint.js';
import { leftOf } from '../store/sessions.js';

const Token = Type.Object({ token: Type.String({ examples: ['q0sVwqDFz2c3'] }) }, { title: 'XsrfToken', description: 'The value for X-XSRF-Token; a browser that lost its XSRF-TOKEN cookie gets it again.' });

/**
 * GET /api/auth/csrf: what X-XSRF-Token has to say for the session of the call. A browser that has a good XSRF-TOKEN
 * cookie keeps it, since other tabs use it too; one that lost it gets a new one.
 */
export const csrfToken = userEndpoint({
  tag: 'Sessions',
  summary: 'The XSRF token of the session',
  replies: { 200: { body: Token, description: 'The token, and the cookie for a browser that lost it.', headers: { 'Set-Cookie': 'XSRF-TOKEN, where a cookie authenticated the call and the browser has no good one.' } } },
  errors: [],
  handle: async ({ config, keyring, mysql }: Pick<Deps, 'config' | 'keyring' | 'mysql'>, call) => {
    const { sessionId, by } = call.principal;
    const sent = call.tossed.has(COOKIES.xsrf.name) ? undefined : call.cookies.get(COOKIES.xsrf.name);
    if (sent !== undefined && isXsrfOf(keyring, sessionId, sent)) return json(200, { token: sent });
    const token = issueXsrf(keyring, sessionId);
    if (by === 'bearer') return json(200, { token });
    const maxAge = Math.floor((await leftOf(mysql, sessionId)) / 1000);
    return json(200, { token }, { cookies: [setCookie('xsrf', token, maxAge, config.cookieDomainXsrf)] });
  },
});
