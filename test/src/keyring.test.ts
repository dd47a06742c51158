import { randomBytes } from 'node:crypto';
import t from 'tap';
import { createKeyring, equal, subjectOf } from '../../src/keyring.js';

const [FORMER, CURRENT, FOREIGN] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const before = createKeyring(FORMER, null);
const during = createKeyring(CURRENT, FORMER);
const after = createKeyring(CURRENT, null);

t.test('while the secret is replaced, what the former made counts and new values are of the current one', (t) => {
  const tag = before.mac('csrf', 'a');
  t.ok(during.proves('csrf', tag, 'a'));
  t.notOk(after.proves('csrf', tag, 'a'));
  t.notOk(createKeyring(FOREIGN, CURRENT).proves('csrf', tag, 'a'));
  t.same(during.mac('csrf', 'a'), after.mac('csrf', 'a'));
  t.same(during.macs('csrf', 'a'), [after.mac('csrf', 'a'), tag]);

  const sealed = before.seal('totp-secret', Buffer.from('secret'), 'factor 1');
  t.same(during.open('totp-secret', sealed, 'factor 1'), Buffer.from('secret'));
  t.equal(after.open('totp-secret', sealed, 'factor 1'), null);
  t.same(after.open('totp-secret', during.seal('totp-secret', Buffer.from('new'), 'factor 1'), 'factor 1'), Buffer.from('new'));
  t.end();
});

t.test('what the former secret sealed is sealed anew; what the current one sealed is left; the rest is nobody’s', (t) => {
  const sealed = before.seal('totp-secret', Buffer.from('secret'), 'factor 1');
  const renewed = during.reseal('totp-secret', sealed, 'factor 1')!;
  t.same(after.open('totp-secret', renewed, 'factor 1'), Buffer.from('secret'));
  t.equal(during.reseal('totp-secret', renewed, 'factor 1'), renewed);
  t.equal(during.reseal('totp-secret', sealed, 'factor 2'), null);
  t.equal(after.reseal('totp-secret', sealed, 'factor 1'), null);
  t.end();
});

t.test('a value of one purpose, context or list of parts is none of another', (t) => {
  t.notOk(before.proves('csrf', before.mac('otp', 'a'), 'a'));
  t.notSame(before.mac('csrf', 'ab', 'c'), before.mac('csrf', 'a', 'bc'));
  t.notSame(before.mac('csrf', 'ab'), before.mac('csrf', 'ab', ''));
  t.same(before.mac('csrf', 'ä'), before.mac('csrf', Buffer.from('ä')));
  const sealed = before.seal('totp-secret', Buffer.from('secret'), 'factor 1');
  t.equal(before.open('totp-secret', sealed, 'factor 2'), null);
  t.equal(before.open('signing-key', sealed, 'factor 1'), null);
  t.end();
});

t.test('no bit of a sealed value can be changed, and no two are alike', (t) => {
  const sealed = before.seal('notification', Buffer.from('a code'), 'id');
  for (let i = 0; i < sealed.length; i += 1) {
    const changed = Buffer.from(sealed);
    changed[i]! ^= 1;
    t.equal(before.open('notification', changed, 'id'), null, `byte ${i}`);
  }
  for (let length = 0; length < sealed.length; length += 1) t.equal(before.open('notification', sealed.subarray(0, length), 'id'), null, `${length} bytes`);
  t.notSame(before.seal('notification', Buffer.from('a code'), 'id'), sealed);
  t.same(before.open('notification', before.seal('notification', Buffer.alloc(0), ''), ''), Buffer.alloc(0), 'nothing is a text too');
  t.end();
});

t.test('half a MAC proves, less does not, and more does not', (t) => {
  const tag = before.mac('refresh', 'x');
  t.ok(before.proves('refresh', tag.subarray(0, 16), 'x'));
  t.notOk(before.proves('refresh', tag.subarray(0, 15), 'x'));
  t.notOk(before.proves('refresh', Buffer.alloc(0), 'x'));
  t.notOk(before.proves('refresh', Buffer.concat([tag, Buffer.alloc(1)]), 'x'));
  t.notOk(equal(tag, tag.subarray(1)));
  t.end();
});

t.test('the subject of a user is stable and tells nothing of the id', (t) => {
  const id = '00000000-0000-4000-8000-000000000001';
  t.equal(subjectOf(before, id), subjectOf(createKeyring(FORMER, FOREIGN), id));
  t.match(subjectOf(before, id), /^[\w-]{43}$/);
  t.not(subjectOf(before, id), subjectOf(after, id));
  t.end();
});
