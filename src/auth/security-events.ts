import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { json } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { Id, OrNull, time } from '../http/fields.js';
import type { Keyring } from '../keyring.js';
import { entriesOf, type StoredEntry } from '../store/audit.js';
import { RISKS, type Risk } from './risk.js';

type Needs = Pick<Deps, 'mysql' | 'keyring'>;

const USUAL = 50;

const SecurityEvents = Type.Object(
  {
    events: Type.Array(
      Type.Object({
        action: Type.String({ description: 'What was done or tried, as in the audit log of the export.', examples: ['login'] }),
        outcome: Type.Union([Type.Literal('success'), Type.Literal('failure'), Type.Literal('locked'), Type.Literal('mfa_required')], {
          description: 'locked: the failure after which the account was locked for a while. mfa_required: the password was right and a second factor due.',
        }),
        createdAt: time(),
        ipAddress: OrNull(Type.String({ examples: ['192.0.2.1'] })),
        country: OrNull(Type.String({ description: 'ISO 3166-1 code; null when it could not be told.', examples: ['DE'] })),
        sessionId: OrNull(Id),
        risks: Type.Array(Type.Union(RISKS.map((risk) => Type.Literal(risk))), { description: 'What was unusual about the login.' }),
      }),
    ),
    nextCursor: OrNull(Type.String({ examples: ['AZj0onweuwQ'], description: 'Asks for what is older; null at the end.' })),
  },
  { title: 'SecurityEvents', description: 'What happened to the account, newest first.' },
);

/** GET /api/auth/security-events: what the audit log says of the caller's account, a page at a time. */
export const securityEvents = userEndpoint({
  tag: 'Account',
  summary: 'What happened to the account, and from where',
  description: 'Newest first. Failed logins and locks are among it; what happens while one pages through does not move the pages.',
  query: Type.Object({
    limit: Type.Optional(Type.String({ pattern: '^([1-9][0-9]?|100)$', description: `Events of a page, 1 to 100; ${USUAL} unless told.`, examples: ['20'] })),
    cursor: Type.Optional(Type.String({ maxLength: 64, description: 'nextCursor of the page before.' })),
  }),
  replies: { 200: SecurityEvents },
  errors: [],
  handle: async ({ mysql, keyring }: Needs, call) => {
    const { userId } = call.principal;
    const limit = Number(call.query.limit ?? USUAL);
    const before = call.query.cursor === undefined ? null : readCursor(keyring, userId, call.query.cursor);
    const entries = await entriesOf(mysql, userId, before, limit + 1);
    const page = entries.slice(0, limit);
    return json(200, { events: page.map(eventOf), nextCursor: entries.length > limit ? cursorOf(keyring, userId, page.at(-1)!.id) : null });
  },
});

// What the gate counts, which bucket a lock fell on and why a code was refused stay out: whoever has stolen a session reads this too.
function eventOf({ action, status, ip, country, sessionId, detail, createdAt }: StoredEntry) {
  const { outcome, locked, risks } = detail;
  const told = status === 'success' ? (outcome === 'mfa_required' ? 'mfa_required' : 'success') : locked === true ? 'locked' : 'failure';
  return { action, outcome: told, createdAt, ipAddress: ip, country, sessionId, risks: Array.isArray(risks) ? risks.filter(isRisk) : [] } as const;
}

const isRisk = (word: unknown): word is Risk => (RISKS as readonly unknown[]).includes(word);

const context = (userId: string): string => `security-events ${userId}`;

/** Sealed, since the number of an entry tells how much the service does. */
function cursorOf(keyring: Keyring, userId: string, id: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(id));
  return keyring.seal('cursor', bytes, context(userId)).toString('base64url');
}

/** @throws ApiError INVALID_REQUEST when it was not given to this account */
function readCursor(keyring: Keyring, userId: string, cursor: string): number {
  const bytes = keyring.open('cursor', Buffer.from(cursor, 'base64url'), context(userId));
  if (bytes?.length !== 8) throw new ApiError('INVALID_REQUEST', { errors: [{ path: '/cursor', message: 'is none that this account was given' }] });
  return Number(bytes.readBigUInt64BE());
}
