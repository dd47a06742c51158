import { Type } from '@sinclair/typebox';
import { ERRORS, type ErrorCode } from '../errors.js';

const REQUEST_ID = '6f0d6a1e-8a51-4b5e-9a52-0f6f3a1c7b90';

/** Every error reply (RFC 9457). Members that go with some codes alone are optional. */
export const Problem = Type.Object(
  {
    status: Type.Integer({ description: 'The status of the reply.' }),
    title: Type.String({ description: 'The meaning of the code, for people.' }),
    code: Type.String({ description: 'The meaning, for programs. It never changes.' }),
    requestId: Type.String({ description: 'The same as X-Request-Id; the log of the service has it too.' }),
    detail: Type.Optional(Type.String({ description: 'What is the matter with this very request.' })),
    retryAfter: Type.Optional(Type.Integer({ minimum: 1, description: 'Seconds until another attempt makes sense; the same as Retry-After.' })),
    errors: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), { description: 'INVALID_REQUEST: what does not fit, by JSON pointer.' })),
    reasons: Type.Optional(Type.Array(Type.Object({ source: Type.String(), reason: Type.String() }), { description: 'DELETION_BLOCKED: who objects, and why.' })),
    permanentDeletionAt: Type.Optional(Type.String({ format: 'date-time', description: 'ACCOUNT_DELETED: until when the account can be restored.' })),
  },
  { title: 'Problem' },
);

/** Statuses whose every code says when to come again. */
export const isTemporary = (status: number): boolean => status === 429 || status === 503;

const EXTRAS: Partial<Record<ErrorCode, object>> = {
  INVALID_REQUEST: { errors: [{ path: '/email', message: 'is required' }] },
  DELETION_BLOCKED: { reasons: [{ source: 'bookings', reason: 'active booking' }] },
  ACCOUNT_DELETED: { permanentDeletionAt: '2026-03-31T09:30:00.000Z' },
};

/** A reply with one code. */
export function problemExample(code: ErrorCode): object {
  const { status, title } = ERRORS[code];
  return { status, title, code, requestId: REQUEST_ID, ...(isTemporary(status) ? { retryAfter: 2 } : {}), ...EXTRAS[code] };
}

/** Codes by status, statuses in order. */
export function byStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of codes) groups.set(ERRORS[code].status, [...(groups.get(ERRORS[code].status) ?? []), code]);
  return new Map([...groups].sort(([a], [b]) => a - b));
}
