import { ApiError } from '../errors.js';

/** Largest request body, in bytes. */
export const BODY_MAX = 16 * 1024;
const DEPTH_MAX = 8;

// ignoreBOM keeps a byte order mark in the text, where JSON.parse refuses it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a request body strictly: valid UTF-8, JSON (RFC 8259) no deeper than 8, no name twice in an object,
 * no lone surrogates, no numbers beyond a double, no names that reach prototypes.
 * @throws ApiError UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST
 */
export function parseBody(bytes: Buffer, contentType: string | undefined): unknown {
  if (bytes.length === 0 && contentType === undefined) throw invalid('a body is required');
  if (!/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(contentType ?? '')) throw new ApiError('UNSUPPORTED_MEDIA_TYPE');
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw invalid('the body is not valid UTF-8');
  }
  if (depthOf(text) > DEPTH_MAX) throw invalid(`the body is nested deeper than ${DEPTH_MAX}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid('the body is not valid JSON');
  }
  checkNames(text);
  checkValues(value);
  return value;
}

const invalid = (detail: string): ApiError => new ApiError('INVALID_REQUEST', { detail, errors: [{ path: '', message: detail }] });

/** Deepest nesting of brackets outside strings; one pass, since the text may be anything. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (quoted) {
      if (char === '\\') i += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{' || char === '[') deepest = Math.max(deepest, (depth += 1));
    else if (char === '}' || char === ']') depth -= 1;
  }
  return deepest;
}

/** Tokens of valid JSON text: strings whole, and the brackets and commas between them. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);

/** JSON.parse keeps the last of two equal names in silence; another reader may keep the first. */
function checkNames(text: string): void {
  const open: Set<string>[] = [];
  let last = '';
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      const name = JSON.parse(last) as string;
      const names = open.at(-1)!;
      if (names.has(name)) throw invalid('a name stands twice in one object');
      if (FORBIDDEN.has(name)) throw invalid('a name is not allowed');
      names.add(name);
    }
    last = token;
  }
}

function checkValues(value: unknown): void {
  if (typeof value === 'string' && !(value as string & { isWellFormed(): boolean }).isWellFormed()) throw invalid('a string is not well-formed Unicode');
  if (typeof value === 'number' && !Number.isFinite(value)) throw invalid('a number is too large');
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(checkValues);
}
