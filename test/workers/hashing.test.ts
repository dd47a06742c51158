import { hashSync as bcrypt } from '@node-rs/bcrypt';
import t, { type Test } from 'tap';
import { createLog } from '../../src/log.js';
import { createHashing, type Hashing } from '../../src/pools/hashing.js';

const asker = { network: 'n' };

function hashing(t: Test, argon2Engine: 'auto' | 'node-rs' | 'reference'): Hashing {
  const pool = createHashing({ hashThreads: 1, hashQueueMs: 5000, argon2Engine, argon2MemoryKib: 256, argon2Passes: 1 }, createLog('silent'), { waited: () => undefined, ran: () => undefined, shed: () => undefined });
  t.teardown(() => pool.close());
  return pool;
}

t.test('threads of one engine verify what threads of the other hashed, and see nothing to renew', async (t) => {
  const pools = [hashing(t, 'node-rs'), hashing(t, 'reference'), hashing(t, 'auto')];
  for (const maker of pools) {
    const hash = await maker.hash('a password', asker);
    for (const checker of pools) {
      t.same(await checker.verify(hash, 'a password', asker), { ok: true, renewed: null, token: null });
      t.equal((await checker.verify(hash, 'a passwore', asker)).ok, false);
    }
  }
});

t.test('a bcrypt password counts to its last byte, though bcrypt itself ends at the 72nd and at a NUL', async (t) => {
  const pool = hashing(t, 'auto');
  for (const version of ['2a', '2b', '2y'] as const) {
    const ok = async (stored: string, given: string): Promise<boolean> => (await pool.verify(bcrypt(stored, { cost: 4, version }), given, asker)).ok;
    t.equal(await ok('a password', 'a password'), true, version);
    t.equal(await ok('a password', 'a password\u0000'), false);
    t.equal(await ok('a password', 'a password\u0000more'), false);
    t.equal(await ok('x'.repeat(72), 'x'.repeat(72)), true);
    t.equal(await ok('x'.repeat(72), 'x'.repeat(73)), false);
    t.equal(await ok('x'.repeat(73), `${'x'.repeat(72)}y`), false);
    t.equal(await ok('ä'.repeat(36), 'ä'.repeat(36)), true, '72 bytes of 36 letters');
  }
});

t.test('hashes that are none, or dearer than a thread may spend, are never right and cost what others cost', async (t) => {
  const pool = hashing(t, 'auto');
  const tail = `$${'A'.repeat(22)}$${'A'.repeat(43)}`;
  await pool.verify(null, 'a password', asker);
  for (const hash of ['', 'a password', `$argon2id$v=19$m=8388608,t=1000,p=1${tail}`, `$argon2id$v=19$m=8,t=1,p=16${tail}`, `$2b$31$${'e'.repeat(53)}`, `$argon2id$v=19$m=256,t=1,p=1${tail}`]) {
    const started = performance.now();
    t.same(await pool.verify(hash, 'a password', asker), { ok: false, renewed: null, token: null }, hash.slice(0, 30));
    t.ok(performance.now() - started < 1000);
  }
  t.equal(pool.state().alive, 1, 'the thread lives on');
});
