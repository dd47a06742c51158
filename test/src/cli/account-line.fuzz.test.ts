import fc from 'fast-check';
import t from 'tap';
import { readAccountLine } from '../../../src/cli/account-line.js';
import { readLines } from '../../../src/cli/lines.js';
import { figure } from '../../support/figures.js';
import { anyText, holds, holdsLater, mutantOf, textOf, thrown } from '../../support/fuzz.js';

/** Stands in every value, and must stand in no message. */
const MARK = 'MARKED-SECRET';
const marked = fc.oneof(fc.constant(MARK), fc.constantFrom(`${MARK}@x`, `a@${MARK}`, ` ${MARK}`, `${MARK}\u0000`, `$argon2id$${MARK}`), fc.string().map((text) => MARK + text));
const value = fc.oneof(marked, fc.array(marked, { maxLength: 3 }), fc.constantFrom(null, true, 0, {}, [null]), fc.record({ provider: marked, givenName: marked }, { requiredKeys: [] }).map((profile) => [profile]));
const lines = fc.dictionary(fc.constantFrom('email', 'password', 'passwordHash', 'emailVerified', 'phone', 'phoneVerified', 'status', 'roles', 'tenants', 'profiles'), value).map((line) => JSON.stringify(line));

t.test('a line of an import is read or refused in words, which never hold what it says', (t) => {
  const isRead = (text: string): boolean => {
    const error = thrown(() => readAccountLine(text));
    return error === undefined || (error instanceof Error && error.constructor === Error && error.message !== '' && !error.message.includes(MARK));
  };
  let tried = 0;
  tried += holds(t, 'whatever its members are', lines, isRead);
  tried += holds(t, 'however it is broken', mutantOf(lines), ({ mutant }) => isRead(mutant));
  tried += holds(t, 'or if it is no line at all', fc.oneof(anyText, fc.json(), textOf('{', '}', '"email":', '"a@b"', ',', '"__proto__":', '[', ']', 'null')), isRead);
  const good = fc.record({ email: fc.constantFrom('a@b', 'Ada@Example.org'), emailVerified: fc.boolean(), phone: fc.constantFrom('+491234567', '12345', null), status: fc.constantFrom('active' as const, 'disabled' as const), roles: fc.array(fc.stringMatching(/^[a-z]{1,20}$/), { maxLength: 3 }), tenants: fc.array(fc.stringMatching(/^[\w-]{1,20}$/), { maxLength: 3 }) }, { requiredKeys: ['email'] });
  tried += holds(t, 'a good line says what it said, its address in lower case', good, (line) => JSON.stringify(readAccountLine(JSON.stringify(line))) === JSON.stringify({ ...line, email: line.email.toLowerCase() }));
  figure(t, 'T59', { did: `${tried} generated lines of an import with marked values`, figure: '0 messages with a value in them', ok: tried > 0 });
  t.end();
});

t.test('a file is cut into lines alike, however it arrives', async (t) => {
  const file = fc.array(fc.oneof(fc.constantFrom('\n', '\r\n', '\r', '\u2028', '\ufeff', 'é', '{"a":1}'), fc.string({ maxLength: 5 })), { maxLength: 20 }).map((parts) => Buffer.from(parts.join('')));
  const tried = await holdsLater(t, 'in any pieces', fc.tuple(file, fc.array(fc.nat(30), { maxLength: 10 })), async ([bytes, cuts]) => {
    const read = async (pieces: Buffer[]): Promise<(string | null)[]> => {
      const all: (string | null)[] = [];
      for await (const { text } of readLines((async function* () { yield* pieces; })())) all.push(text);
      return all;
    };
    const pieces: Buffer[] = [];
    let from = 0;
    for (const cut of cuts) pieces.push(bytes.subarray(from, (from += cut)));
    pieces.push(bytes.subarray(from));
    const expected = bytes.toString().replace(/\n$/, '').split('\n').map((line) => line.replace(/\r$/, ''));
    const [whole, split] = [await read([bytes]), await read(pieces)];
    expected[0] = expected[0]!.replace(/^\ufeff/, '');
    return JSON.stringify(whole) === JSON.stringify(split) && JSON.stringify(whole) === JSON.stringify(bytes.length === 0 ? [] : expected);
  });
  t.ok(tried);
});
