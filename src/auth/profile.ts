import { Type } from '@sinclair/typebox';
import type { Profile as Read } from '../store/profiles.js';
import { json } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { Email, Id, OrNull, time } from '../http/fields.js';

const Profile = Type.Object(
  {
    id: Id,
    email: Email,
    emailVerified: Type.Boolean(),
    phone: OrNull(Type.String({ examples: ['+15555550100'] })),
    phoneVerified: Type.Boolean(),
    status: Type.Union([Type.Literal('active'), Type.Literal('disabled')]),
    createdAt: time(),
    profiles: Type.Array(Type.Object({ provider: Type.String({ examples: ['local'] }), givenName: OrNull(Type.String({ examples: ['Ada'] })), familyName: OrNull(Type.String({ examples: ['Lovelace'] })), createdAt: time() })),
    roles: Type.Array(Type.Object({ id: Id, name: Type.String({ examples: ['member'] }), description: OrNull(Type.String({ examples: ['May use the service'] })) })),
    tenants: Type.Array(Type.Object({ id: Id, name: Type.String({ examples: ['Example'] }), slug: Type.String({ examples: ['example'] }) })),
    mfaEnabled: Type.Boolean(),
    sessionId: Id,
  },
  { title: 'Profile', description: 'The account, its names per provider, its roles and tenants, and the session of the call.' },
);

/** GET /api/auth/profile: who the caller is. */
export const profile = userEndpoint({
  tag: 'Account',
  summary: 'Who the caller is',
  reads: 'profile',
  replies: { 200: Profile },
  errors: [],
  handle: (_needs, { principal }) => Promise.resolve(json(200, { ...(principal.read as Read), sessionId: principal.sessionId })),
});
