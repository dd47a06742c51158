import makeArgon2 from 'argon2';
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { loadArgon2 } from '../../workers/argon2.js';
import { isOutdated, readPhc } from '../../workers/phc.js';

const cost = { memoryKib: 256, passes: 2 };
const PASSWORDS = ['correct horse', '', 'x'.repeat(1000), 'a\u0000b', 'pässwörd \u{1F511}'];

t.test('each engine verifies what the other hashed, and makes the same kind of hash', async (t) => {
  const engines = [await loadArgon2('node-rs'), await loadArgon2('reference')];
  t.same(engines.map(({ engine }) => engine), ['node-rs', 'reference']);
  for (const maker of engines) {
    for (const plain of PASSWORDS) {
      const hash = await maker.hash(plain, cost);
      t.match(hash, /^\$argon2id\$v=19\$m=256,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
      t.not(hash, await maker.hash(plain, cost), 'salted');
      for (const checker of engines) {
        t.equal(await checker.verify(hash, plain), true, `${checker.engine} of ${maker.engine}`);
        t.equal(await checker.verify(hash, `${plain} `), false);
        t.equal(await checker.verify(hash, `${plain}\u0000`), false);
      }
    }
  }
});

t.test('what a stored hash says of itself is read, and what no thread may spend is not', (t) => {
  const tail = `$${'A'.repeat(22)}$${'Q'.repeat(43)}`;
  t.same(readPhc(`$argon2id$v=19$m=19456,t=2,p=1${tail}`), { scheme: 'argon2', variant: 'argon2id', lanes: 1, cost: { memoryKib: 19456, passes: 2 } });
  t.same(readPhc(`$2b$12$${'e'.repeat(53)}`), { scheme: 'bcrypt', rounds: 12 });
  const refused = [
    '', 'x', `$argon2id$v=19$m=262145,t=1,p=1${tail}`, `$argon2id$v=19$m=262144,t=9,p=1${tail}`, `$argon2id$v=19$m=19456,t=0,p=1${tail}`, `$argon2id$v=19$m=19456,t=2,p=0${tail}`, `$argon2id$v=19$m=19456,t=2,p=17${tail}`,
    `$argon2id$m=19456,t=2,p=1${tail}`, `$argon2id$v=19$m=019456,t=2,p=1${tail}`, `$argon2id$v=19$m=15,t=2,p=2${tail}`, `$argon2id$v=19$m=19456,t=2,p=1$${'B'.repeat(22)}$${'Q'.repeat(43)}`, `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'R'.repeat(43)}`, `$argon2x$v=19$m=19456,t=2,p=1${tail}`, ` $argon2id$v=19$m=19456,t=2,p=1${tail}`, `$argon2id$v=19$m=19456,t=2,p=1${tail}\n`, `$2b$15$${'e'.repeat(53)}`, `$2b$10$${'e'.repeat(52)}f`, `$2b$10$${'e'.repeat(21)}f${'e'.repeat(31)}`, `$2b$03$${'e'.repeat(53)}`, `$2x$10$${'e'.repeat(53)}`, `$1$abc$def`,
  ];
  for (const hash of refused) t.equal(readPhc(hash), null, hash.slice(0, 40));
  t.end();
});

t.test('what is read is what both engines verify, whatever the lengths of salt and output', async (t) => {
  const engines = [await loadArgon2('node-rs'), await loadArgon2('reference')];
  for (const type of [makeArgon2.argon2d, makeArgon2.argon2i, makeArgon2.argon2id] as const) {
    for (const [salt, hashLength, parallelism] of [[8, 32, 1], [16, 16, 1], [16, 32, 4], [32, 64, 16], [64, 100, 1]] as const) {
      const hash = await makeArgon2.hash('correct horse', { type, salt: randomBytes(salt), hashLength, parallelism, memoryCost: 256, timeCost: 1 });
      t.match(readPhc(hash), { scheme: 'argon2', lanes: parallelism, cost: { memoryKib: 256, passes: 1 } }, hash);
      for (const engine of engines) {
        t.equal(await engine.verify(hash, 'correct horse'), true, engine.engine);
        t.equal(await engine.verify(hash, 'correct horsf'), false);
      }
    }
  }
});

t.test('older schemes and cheaper costs are outdated, dearer ones are not', (t) => {
  const now = { memoryKib: 19456, passes: 2 };
  const argon2 = (variant: string, memoryKib: number, passes: number): boolean => isOutdated({ scheme: 'argon2', variant, lanes: 1, cost: { memoryKib, passes } }, now);
  t.ok(isOutdated({ scheme: 'bcrypt', rounds: 14 }, now));
  t.ok(argon2('argon2i', 19456, 2));
  t.ok(argon2('argon2d', 65536, 3));
  t.ok(argon2('argon2id', 19455, 2));
  t.ok(argon2('argon2id', 65536, 1));
  t.notOk(argon2('argon2id', 19456, 2));
  t.notOk(argon2('argon2id', 65536, 3));
  t.end();
});
