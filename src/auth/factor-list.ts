import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { json } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { time } from '../http/fields.js';
import { countFactors, listFactors } from '../store/mfa.js';

const Factors = Type.Object(
  {
    factors: Type.Array(
      Type.Object({
        method: Type.Union([Type.Literal('totp'), Type.Literal('recovery_code')]),
        verified: Type.Boolean({ description: 'Whether logins ask for it; an app that was never confirmed is not.' }),
        createdAt: time(),
      }),
    ),
    recoveryCodesLeft: Type.Integer({ minimum: 0, description: 'Recovery codes that are unused.', examples: [10] }),
  },
  { title: 'SecondFactors', description: 'What is set up, in the order it came.' },
);

/** GET /api/auth/mfa: the second factors of the caller. */
export const factors = userEndpoint({
  tag: 'Second factors',
  summary: 'Which second factors are set up',
  replies: { 200: Factors },
  errors: [],
  handle: async ({ mysql }: Pick<Deps, 'mysql'>, call) => {
    const { userId } = call.principal;
    const [listed, { recoveryCodes }] = await Promise.all([listFactors(mysql, userId), countFactors(mysql, userId)]);
    return json(200, { factors: listed, recoveryCodesLeft: recoveryCodes });
  },
});
