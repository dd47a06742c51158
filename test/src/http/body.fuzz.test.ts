import fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { ApiError } from '../../../src/errors.js';
import { BODY_MAX, parseBody } from '../../../src/http/body.js';
import { figure } from '../../support/figures.js';
import { anyText, holds, leastMs, mutantOf, textOf, thrown } from '../../support/fuzz.js';

const parse = (text: string | Uint8Array): unknown => parseBody(Buffer.from(text as string), 'application/json');
const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.code === 'INVALID_REQUEST';

const FORBIDDEN = ['__proto__', 'constructor', 'prototype'];
/** What the reader must refuse of what JSON.parse takes, told from the value that another reader made of it. */
function isStrict(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  return depth < 8 && Reflect.ownKeys(value).every((name) => !FORBIDDEN.includes(String(name))) && Object.values(value).every((one) => isStrict(one, depth + 1));
}

const values = fc.jsonValue({ maxDepth: 10, stringUnit: 'binary' });
const pieces = textOf('{', '}', '[', ']', ',', ':', '"', '\\', '\\u0061', '\\ud800', '"a"', '"b":', '1', '1e400', '-0', 'null', 'true', ' ', '\n', '\ufeff', '"__proto__"');

t.test('the reader of bodies and JSON.parse agree, but for what is refused on purpose', (t) => {
  let tried = 0;
  tried += holds(t, 'a value comes back as it was, or is one of those to refuse', values, (value) => {
    const text = JSON.stringify(value);
    const again: unknown = JSON.parse(text);
    return isStrict(again) ? isDeepStrictEqual(parse(text), again) : isRefusal(thrown(() => parse(text)));
  });
  tried += holds(t, 'text with one place changed is read as JSON.parse reads it, or refused', mutantOf(values.map((value) => JSON.stringify(value))), ({ mutant: cut }) => {
    // Half characters do not survive the way to the service.
    const mutant = cut.toWellFormed();
    const error = thrown(() => parse(mutant));
    const other = thrown(() => JSON.parse(mutant) as unknown);
    return error === undefined ? other === undefined && isDeepStrictEqual(parse(mutant), JSON.parse(mutant)) : isRefusal(error);
  });
  tried += holds(t, 'any text, and pieces of JSON in any order, are read or refused', fc.oneof(anyText, pieces), (text) => {
    const error = thrown(() => parse(text));
    return error === undefined ? thrown(() => JSON.parse(text) as unknown) === undefined : isRefusal(error);
  });
  tried += holds(t, 'bytes are read when they are UTF-8 and JSON', fc.uint8Array({ maxLength: 200 }), (bytes) => {
    const error = thrown(() => parse(bytes));
    return error === undefined || isRefusal(error);
  });
  const names = fc.array(fc.constantFrom('a', 'b', 'c', '', 'é', '__proto__', '\\"', '\n'), { maxLength: 6 });
  tried += holds(t, 'an object is refused when two of its names are equal, however they are spelt', fc.tuple(names, fc.boolean()), ([list, escaped]) => {
    const spell = (name: string, i: number): string => (escaped && i % 2 ? `"${name.replace(/[^]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}"` : JSON.stringify(name));
    const text = `[{${list.map((name, i) => `${spell(name, i)}:{"a":${i}}`).join(',')}}]`;
    const isFine = new Set(list).size === list.length && !list.includes('__proto__');
    return isFine ? isDeepStrictEqual(parse(text), JSON.parse(text)) : isRefusal(thrown(() => parse(text)));
  });
  tried += holds(t, 'nesting is taken to a depth of 8', fc.array(fc.boolean(), { maxLength: 20 }), (shape) => {
    const text = shape.map((isList) => (isList ? '[' : '{"a":')).join('') + '1' + [...shape].reverse().map((isList) => (isList ? ']' : '}')).join('');
    return shape.length <= 8 ? isDeepStrictEqual(parse(text), JSON.parse(text)) : isRefusal(thrown(() => parse(text)));
  });
  tried += holds(t, 'a content type is taken or UNSUPPORTED_MEDIA_TYPE', fc.oneof(anyText, textOf('application/json', ';', ' ', 'charset', '=', '"', 'utf-8', 'UTF-8', 'text/plain', ',')), (type) => {
    const error = thrown(() => parseBody(Buffer.from('{}'), type));
    return error === undefined ? /^application\/json(\s*;\s*charset\s*=\s*("utf-8"|utf-8|"utf-8|utf-8")\s*)?\s*;?\s*$/i.test(type) : error instanceof ApiError && error.code === 'UNSUPPORTED_MEDIA_TYPE';
  });
  const slowest = Math.max(...['[', '{"a":', '"\\', '\\"', '"a":1,', '{"a":1,', ' ', '\u00e9', '1', '[],'].map((piece) => leastMs(() => thrown(() => parse(piece.repeat(BODY_MAX / Buffer.byteLength(piece)))))));
  figure(t, 'T41', { did: `${tried} generated bodies, held against JSON.parse; 10 of 16 KiB timed`, figure: `no disagreement; ${slowest.toFixed(1)} ms for the slowest`, ok: tried > 0 && slowest <= 5 });
  t.end();
});
