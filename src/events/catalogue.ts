import { Type, type Static } from '@sinclair/typebox';

const instant = Type.String({ description: 'ISO 8601, UTC' });
const userId = Type.String();
const email = Type.String();

/** Every event that other services may hear, with the fields its message carries beside id, type and time. */
export const EVENTS = {
  'identity.user.pre_deletion_validate': Type.Object({ userId, email }),
  'identity.user.deleted': Type.Object({ userId, email, gracePeriodDays: Type.Integer(), permanentDeletionAt: instant }),
  'identity.user.restored': Type.Object({ userId, email, originalDeletionAt: instant }),
  'identity.user.permanently_deleted': Type.Object({ userId, email, originalDeletionAt: instant, daysInDeletedState: Type.Integer() }),
  'identity.session.reuse_detected': Type.Object({ userId, sessionId: Type.String() }),
} as const;

export type EventType = keyof typeof EVENTS;
export type EventFields<T extends EventType> = Static<(typeof EVENTS)[T]>;
