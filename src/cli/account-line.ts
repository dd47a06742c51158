import { Type, type Static } from '@sinclair/typebox';
import { ApiError } from '../errors.js';
import { isEmail, normaliseEmail } from '../email.js';
import { validator } from '../http/validate.js';
import { readPhc } from '../../workers/phc.js';

export const PASSWORD_RULE = 'a password has 8 to 256 characters';
export const PHONE_RULE = 'a phone number has 5 to 20 digits, with or without + in front';

export const isPassword = (text: string): boolean => text.isWellFormed() && /^.{8,256}$/su.test(text);
export const isPhone = (text: string): boolean => /^\+?\d{5,20}$/.test(text);

const Line = Type.Object(
  {
    email: Type.String(),
    password: Type.Optional(Type.String()),
    passwordHash: Type.Optional(Type.String()),
    emailVerified: Type.Optional(Type.Boolean()),
    phone: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    phoneVerified: Type.Optional(Type.Boolean()),
    status: Type.Optional(Type.Union([Type.Literal('active'), Type.Literal('disabled')])),
    roles: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 100 })),
    tenants: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }), { maxItems: 100 })),
    profiles: Type.Optional(
      Type.Array(
        Type.Object({
          provider: Type.String({ pattern: '^[\\x21-\\x7e]{1,64}$' }),
          givenName: Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Null()])),
          familyName: Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Null()])),
        }),
        { maxItems: 20 },
      ),
    ),
  },
  // A misspelt member would be lost in silence.
  { additionalProperties: false },
);

export type AccountLine = Static<typeof Line>;

const check = validator(Line);

/**
 * Reads one line of an import.
 * @throws Error whose message says what is wrong with the line
 */
export function readAccountLine(text: string): AccountLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('not valid JSON');
  }
  try {
    check(value);
  } catch (error) {
    const faults = error instanceof ApiError ? (error.extras.errors ?? []) : [];
    throw new Error(faults.map(({ path, message }) => `${path} ${message}`.trim()).join('; '), { cause: error });
  }
  const line = value as AccountLine;
  const email = normaliseEmail(line.email);
  if (!isEmail(email)) throw new Error('/email is not an e-mail address');
  if (line.password !== undefined && line.passwordHash !== undefined) throw new Error('password and passwordHash exclude each other');
  if (line.password !== undefined && !isPassword(line.password)) throw new Error(`/password: ${PASSWORD_RULE}`);
  if (line.passwordHash !== undefined && !readPhc(line.passwordHash)) throw new Error('/passwordHash is neither a PHC argon2 nor a bcrypt string, or costs too much to verify');
  if (typeof line.phone === 'string' && !isPhone(line.phone)) throw new Error(`/phone: ${PHONE_RULE}`);
  return { ...line, email };
}
