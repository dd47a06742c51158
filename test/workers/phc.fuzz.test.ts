import fc from 'fast-check';
import t from 'tap';
import { readPhc } from '../../workers/phc.js';
import { figure } from '../support/figures.js';
import { anyText, holds, leastMs, mutantOf, textOf } from '../support/fuzz.js';

const base64 = (min: number, max: number) => fc.uint8Array({ minLength: min, maxLength: max }).map((bytes) => Buffer.from(bytes).toString('base64').replace(/=+$/, ''));
const argon2 = fc.record({ variant: fc.constantFrom('argon2id', 'argon2i', 'argon2d'), m: fc.nat(2 ** 20), t: fc.nat(3000), p: fc.nat(40), salt: base64(8, 40), hash: base64(16, 64) });
const spell = ({ variant, m, t: passes, p, salt, hash }: { variant: string; m: number; t: number; p: number; salt: string; hash: string }): string => `$${variant}$v=19$m=${m},t=${passes},p=${p}$${salt}$${hash}`;
const letters = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const bcrypt = fc.tuple(fc.constantFrom('a', 'b', 'y'), fc.nat(40), fc.stringMatching(/^[./A-Za-z0-9]{21}$/), fc.constantFrom('.', 'O', 'e', 'u'), fc.stringMatching(/^[./A-Za-z0-9]{30}$/), fc.nat(15).map((i) => letters[i * 4]!)).map(([kind, rounds, salt, end, hash, last]) => ({ rounds, text: `$2${kind}$${String(rounds).padStart(2, '0')}$${salt}${end}${hash}${last}` }));

/** Whether a thread may be given it. */
function isAffordable(text: string): boolean {
  const phc = readPhc(text);
  if (phc === null) return true;
  if (phc.scheme === 'bcrypt') return phc.rounds >= 4 && phc.rounds <= 14;
  const { memoryKib, passes } = phc.cost;
  return memoryKib <= 256 * 1024 && memoryKib * passes <= 2 * 1024 * 1024 && phc.lanes >= 1 && phc.lanes <= 16 && memoryKib >= 8 * phc.lanes && passes >= 1;
}

t.test('a stored hash is read as what it says, and never costs more than a thread may spend', (t) => {
  let tried = 0;
  tried += holds(t, 'argon2 is read exactly when it is affordable', argon2, (parts) => {
    const read = readPhc(spell(parts));
    const { m, t: passes, p } = parts;
    const isFine = m <= 256 * 1024 && m * passes <= 2 * 1024 * 1024 && p >= 1 && p <= 16 && passes >= 1 && m >= 8 * p && m >= 1;
    return isFine ? read !== null && read.scheme === 'argon2' && read.variant === parts.variant && read.lanes === p && read.cost.memoryKib === m && read.cost.passes === passes : read === null;
  });
  tried += holds(t, 'so is bcrypt', bcrypt, ({ rounds, text }) => (rounds >= 4 && rounds <= 14 ? readPhc(text)?.scheme === 'bcrypt' : readPhc(text) === null));
  const mutants = mutantOf(fc.oneof(argon2.map(spell), bcrypt.map(({ text }) => text)), fc.oneof(fc.constantFrom('0', '1', '9', ',', '$', '=', '+', ' ', '\n'), fc.string({ minLength: 1, maxLength: 1 })));
  tried += holds(t, 'with anything changed it is affordable or refused', mutants, ({ mutant }) => isAffordable(mutant));
  tried += holds(t, 'so is any text', fc.oneof(anyText, textOf('$argon2id', '$v=19', '$m=', '19456', ',t=', '2', ',p=', '1', '$', 'c2FsdHNhbHRzYWx0', '$2b$', '10$', '99999999', '-1', '1e9')), isAffordable);
  const slowest = Math.max(...['$argon2id$v=19$m=', '1', '$', 'A', '$2b$10$', '='].map((piece) => leastMs(() => readPhc(`$argon2id$v=19$m=64,t=1,p=1$${piece.repeat(100_000 / piece.length)}`))));
  figure(t, 'T52', { did: `${tried} generated password hashes, well formed and not`, figure: `0 given to a thread that cost too much; ${slowest.toFixed(1)} ms to read the longest`, ok: tried > 0 && slowest < 50 });
  t.end();
});
