import { Type, type Static } from '@sinclair/typebox';
import { ApiError } from '../errors.js';
import { isEmail, normaliseEmail } from '../email.js';
import { validator } from '../http/validate.js';
import { isPassword, PASSWORD_RULE } from '../passwords/length.js';
import { readPhc } from '../../workers/phc.js';

export const PHONE_RULE = 'a phone number has 5 to 20 digits, with or without + in front';
const ROLE_RULE = 'a role has 1 to 64 characters, no control characters and no blank at either end';
const TENANT_RULE = 'a tenant has 1 to 64 letters, digits, - and _';
const PROVIDER_RULE = 'a provider has 1 to 64 visible ASCII characters';

export const isPhone = (text: string): boolean => /^\+?\d{5,20}$/.test(text);
// MySQL compares texts as if they had no blanks at the end: 'admin ' would become 'admin'.
const isRole = (text: string): boolean => /^(?!\s)[^\p{Cc}]{1,64}(?<!\s)$/u.test(text);
const isTenant = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);
const isProvider = (text: string): boolean => /^[\x21-\x7e]{1,64}$/.test(text);

const orNull = (maxLength: number) => Type.Optional(Type.Unsafe<string | null>({ type: 'string', nullable: true, maxLength }));

const Line = Type.Object(
  {
    email: Type.String(),
    password: Type.Optional(Type.String()),
    // As long as its column.
    passwordHash: Type.Optional(Type.String({ maxLength: 255 })),
    emailVerified: Type.Optional(Type.Boolean()),
    phone: orNull(32),
    phoneVerified: Type.Optional(Type.Boolean()),
    status: Type.Optional(Type.Unsafe<'active' | 'disabled'>({ type: 'string', enum: ['active', 'disabled'] })),
    roles: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
    tenants: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
    profiles: Type.Optional(Type.Array(Type.Object({ provider: Type.String(), givenName: orNull(255), familyName: orNull(255) }, { additionalProperties: false }), { maxItems: 20 })),
  },
  // A misspelt member would be lost in silence.
  { additionalProperties: false },
);

export type AccountLine = Static<typeof Line>;

const check = validator(Line);

/**
 * Reads one line of an import.
 * @throws Error whose message says everything that is wrong with the line, and never what its values are
 */
export function readAccountLine(text: string): AccountLine {
  const value = parse(text);
  try {
    check(value);
  } catch (error) {
    const faults = error instanceof ApiError ? (error.extras.errors ?? []) : [];
    throw new Error(faults.map(({ path, message }) => `${path} ${message}`.trim()).join('; '), { cause: error });
  }
  const line = value as AccountLine;
  const email = normaliseEmail(line.email);
  const problems = [...problemsOf({ ...line, email })];
  if (problems.length > 0) throw new Error(problems.join('; '));
  return { ...line, email };
}

function parse(text: string): unknown {
  let isWhole = true;
  let value: unknown;
  try {
    value = JSON.parse(text, (_name, part: unknown) => {
      if (typeof part === 'string' && !part.isWellFormed()) isWhole = false;
      return part;
    });
  } catch {
    throw new Error('not valid JSON');
  }
  // Half of a character becomes U+FFFD in the database, and so one address or name another.
  if (!isWhole) throw new Error('an escape such as \\ud800 stands for half a character');
  return value;
}

function* problemsOf(line: AccountLine): Generator<string> {
  if (!isEmail(line.email)) yield '/email is not an e-mail address';
  if (line.password !== undefined && line.passwordHash !== undefined) yield '/password and /passwordHash exclude each other';
  if (line.password !== undefined && !isPassword(line.password)) yield `/password: ${PASSWORD_RULE}`;
  if (line.passwordHash !== undefined && !readPhc(line.passwordHash)) yield '/passwordHash is neither a PHC argon2 nor a bcrypt string, or costs too much to verify';
  if (typeof line.phone === 'string' && !isPhone(line.phone)) yield `/phone: ${PHONE_RULE}`;
  if (line.phoneVerified && typeof line.phone !== 'string') yield '/phoneVerified needs a /phone';
  for (const [i, role] of (line.roles ?? []).entries()) if (!isRole(role)) yield `/roles/${i}: ${ROLE_RULE}`;
  for (const [i, tenant] of (line.tenants ?? []).entries()) if (!isTenant(tenant)) yield `/tenants/${i}: ${TENANT_RULE}`;
  for (const [i, { provider }] of (line.profiles ?? []).entries()) if (!isProvider(provider)) yield `/profiles/${i}/provider: ${PROVIDER_RULE}`;
}
