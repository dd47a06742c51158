import { Type } from '@sinclair/typebox';

const LEAST = 8;
const MOST = 256;

/** Counted in Unicode code points of the text as sent: nothing is trimmed, normalised or cut off. */
export const PASSWORD_RULE = `a password has ${LEAST} to ${MOST} characters`;

/** A password that somebody chooses; JSON Schema counts code points, too. */
export const newPassword = Type.String({ minLength: LEAST, maxLength: MOST, examples: ['a few words of my own'] });

/** A password to compare. An old one may break today's rule. */
export const givenPassword = Type.String({ minLength: 1, examples: ['a few words of my own'] });

export function isPassword(text: string): boolean {
  const length = Array.from(text).length;
  return text.isWellFormed() && length >= LEAST && length <= MOST;
}
