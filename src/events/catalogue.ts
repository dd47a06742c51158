import { Type, type Static, type TObject } from '@sinclair/typebox';

const instant = (description: string) => Type.String({ format: 'date-time', description: `${description}, ISO 8601 in UTC.` });
const userId = Type.String({ format: 'uuid', description: 'Id of the account.' });
const email = Type.String({ description: 'Address of the account.' });

const factors = {
  factors: Type.Integer({ description: 'Second factors that the account has now; the recovery codes together are one.' }),
  recoveryCodes: Type.Integer({ description: 'Recovery codes that are unused now.' }),
};

/** Every event that other services may hear, with the fields its message carries beside id, type and time. */
export const EVENTS = {
  'identity.user.registered': Type.Object(
    { userId, email, provider: Type.Optional(Type.String({ description: 'The other provider that the account was made by; missing for one made with a password.' })) },
    { description: 'Somebody signed up. Made by another provider the address is verified, otherwise it is not proven to be theirs yet.' },
  ),
  'identity.user.pre_deletion_validate': Type.Object(
    {
      userId,
      email,
      validationId: Type.String({ format: 'uuid', description: 'Names this question.' }),
      replyTo: Type.String({ description: 'Redis list that takes the answers: RPUSH {"source"} to agree, {"source", "reason"} to block.' }),
      deadline: instant('Answers count until then; none must be sent later'),
    },
    { description: 'An account is about to be deleted. Sent on the channel only: a question from the past must not be answered.' },
  ),
  'identity.user.deleted': Type.Object(
    { userId, email, gracePeriodDays: Type.Integer({ description: 'Days during which the owner can restore the account.' }), permanentDeletionAt: instant('When the grace period ends') },
    { description: 'An account was soft-deleted.' },
  ),
  'identity.user.restored': Type.Object({ userId, email, originalDeletionAt: instant('When the account had been deleted') }, { description: 'A soft-deleted account was restored.' }),
  'identity.user.permanently_deleted': Type.Object(
    { userId, email, originalDeletionAt: instant('When the account had been soft-deleted'), daysInDeletedState: Type.Integer({ description: 'Whole days from then to the purge.' }) },
    { description: 'An account and what belonged to it were removed for good.' },
  ),
  'identity.user.email_verified': Type.Object({ userId, email }, { description: 'The owner of an account proved to receive mail at its address.' }),
  'identity.user.password_changed': Type.Object(
    { userId, email, by: Type.Union([Type.Literal('reset'), Type.Literal('change')], { description: 'reset: by a token from a mail, all sessions ended; change: by the former password, the other sessions ended.' }) },
    { description: 'An account has a new password.' },
  ),
  'identity.mfa.enabled': Type.Object({ userId, ...factors }, { description: 'An account got a second factor: logins ask for it from now on.' }),
  'identity.mfa.disabled': Type.Object({ userId, ...factors }, { description: 'The second factors of an account were removed: its password alone signs in.' }),
  'identity.mfa.recovery_codes_replaced': Type.Object({ userId, ...factors }, { description: 'An account got new recovery codes; the former ones are worthless.' }),
  'identity.mfa.recovery_code_used': Type.Object({ userId, ...factors }, { description: 'A recovery code stood in for the second factor at a login.' }),
  'identity.session.reuse_detected': Type.Object(
    { userId, sessionId: Type.String({ format: 'uuid', description: 'The session, now revoked.' }) },
    { description: 'A refresh token that had been replaced was used again: its session was revoked.' },
  ),
  'identity.user.created': Type.Object(
    { userId, email, by: Type.Union([Type.Literal('operator'), Type.Literal('import')], { description: 'Whether one account was made by hand or many were imported.' }) },
    { description: 'An operator added an account.' },
  ),
  'identity.user.risk_detected': Type.Object(
    {
      userId,
      sessionId: Type.String({ format: 'uuid', description: 'The session that the login opened.' }),
      risks: Type.Array(Type.Union([Type.Literal('new_network'), Type.Literal('new_device'), Type.Literal('new_country'), Type.Literal('impossible_travel')]), { description: 'What was unusual, at least one word.' }),
      ipAddress: Type.String({ description: 'Address that the login came from.' }),
      country: Type.Union([Type.String(), Type.Null()], { description: 'ISO 3166-1 code of where that is; null when it could not be told.' }),
    },
    { description: 'Somebody logged in from where the account had not been seen before.' },
  ),
} as const;

export type EventType = keyof typeof EVENTS;
export type EventFields<T extends EventType> = Static<(typeof EVENTS)[T]>;

/** A message as subscribers and consumers of the stream get it. */
export type EventMessage<T extends EventType = EventType> = T extends EventType ? { id: string; type: T; time: string } & EventFields<T> : never;

export const EVENT_TYPES = Object.keys(EVENTS) as EventType[];

export const isEventType = (word: string): word is EventType => Object.hasOwn(EVENTS, word);

/** JSON Schema of the whole flat message of a type. */
export const messageSchema = (type: EventType): TObject =>
  Type.Object(
    {
      id: Type.String({ format: 'uuid', description: 'The same on every repeat of the message.' }),
      type: Type.Literal(type),
      time: instant('When it happened'),
      ...EVENTS[type].properties,
    },
    { title: type, ...(EVENTS[type].description === undefined ? {} : { description: EVENTS[type].description }) },
  );
