import { randomBytes } from 'node:crypto';
import { URI, type TOTP } from 'otpauth';
import t from 'tap';
import { newRecoveryCode, newTotpSecret, recoveryCodeHashes, sealTotpSecret, totpStep } from '../../../src/auth/factors.js';
import { createKeyring } from '../../../src/keyring.js';

const keyring = createKeyring(Buffer.alloc(32, 1), null);
const ID = 'factor';
const factorOf = (secret: Buffer, ring = keyring) => ({ id: ID, secret: sealTotpSecret(ring, ID, secret) });

/** RFC 6238, appendix B, SHA-1: seconds and the eight digits, of which apps show the last six. */
const VECTORS: [number, string][] = [
  [59, '94287082'],
  [1111111109, '07081804'],
  [1111111111, '14050471'],
  [1234567890, '89005924'],
  [2000000000, '69279037'],
  [20000000000, '65353130'],
];

t.test('the codes are those of RFC 6238', (t) => {
  const factor = factorOf(Buffer.from('12345678901234567890'));
  for (const [seconds, digits] of VECTORS) {
    const step = Math.floor(seconds / 30);
    t.equal(totpStep(keyring, factor, digits.slice(2), seconds * 1000), step, `at ${seconds}`);
    t.equal(totpStep(keyring, factor, String((Number(digits.slice(2)) + 1) % 1e6).padStart(6, '0'), seconds * 1000), null);
    t.equal(totpStep(keyring, factor, digits, seconds * 1000), null, 'eight digits are none of ours');
    for (const off of [-1, 1]) t.equal(totpStep(keyring, factor, digits.slice(2), (seconds + off * 30) * 1000), step, 'clocks may be one step off, and the step stays that of the code');
    for (const off of [-2, 2]) t.equal(totpStep(keyring, factor, digits.slice(2), (seconds + off * 30) * 1000), null, 'but not two');
  }
  t.end();
});

t.test('only six digits are a code', (t) => {
  const factor = factorOf(Buffer.from('12345678901234567890'));
  for (const text of ['', '28708', '2870822', ' 287082', '287082\n', '28708२', '+28708', '0x1000', '2e5000', '٢٨٧٠٨٢']) t.equal(totpStep(keyring, factor, text, 59_000), null, JSON.stringify(text));
  t.equal(totpStep(keyring, factor, '287082', 59_000), 1);
  t.end();
});

t.test('a secret is sealed for its factor, and opens under the previous SECRET_KEY too', (t) => {
  const secret = Buffer.from('12345678901234567890');
  const factor = factorOf(secret);
  t.notOk(factor.secret.includes(secret));
  t.equal(totpStep(createKeyring(randomBytes(32), Buffer.alloc(32, 1)), factor, '287082', 59_000), 1);
  t.equal(totpStep(createKeyring(randomBytes(32), null), factor, '287082', 59_000), null);
  t.equal(totpStep(keyring, { ...factor, id: 'another' }, '287082', 59_000), null);
  t.end();
});

t.test('a new secret has 160 bits, and its URL says what an app must know', (t) => {
  for (const email of ['ada@example.org', 'a+b&c=d?e#f/:%@example.org', 'ü日@example.org']) {
    const { bytes, text, url } = newTotpSecret('Example: & Co', email);
    t.equal(bytes.length, 20);
    t.match(text, /^[A-Z2-7]{32}$/);
    t.match(url, /^otpauth:\/\/totp\/[^?#\s]+\?[^?#\s]+$/);
    const query = new URL(url).searchParams;
    t.same(Object.fromEntries(query), { issuer: 'Example: & Co', secret: text, algorithm: 'SHA1', digits: '6', period: '30' });
    t.equal(decodeURIComponent(new URL(url).pathname.split('/').at(-1)!), `Example: & Co:${email}`);
    const app = URI.parse(newTotpSecret('Portcullis', email).url);
    t.match(app, { issuer: 'Portcullis', label: email, period: 30, digits: 6 });
  }
  const { bytes, url } = newTotpSecret('Portcullis', 'ada@example.org');
  const app = URI.parse(url);
  t.equal(totpStep(keyring, factorOf(bytes), (app as TOTP).generate({ timestamp: 41 * 30_000 }), 41 * 30_000), 41, 'an app that read it shows our codes');
  t.not(newTotpSecret('a', 'b').text, newTotpSecret('a', 'b').text);
  t.end();
});

t.test('recovery codes are random, and match however they are copied', (t) => {
  const codes = Array.from({ length: 200 }, newRecoveryCode);
  t.equal(new Set(codes).size, 200);
  for (const code of codes) t.match(code, /^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/);
  const letters = new Set(codes.join('').replace(/-/g, ''));
  t.equal(letters.size, 32, 'every letter occurs');
  const hash = (code: string, user = 'ann') => recoveryCodeHashes(keyring, user, code)[0]!.toString('hex');
  const known = hash('0123-4567-89ab-cdej');
  for (const copied of ['0123456789ABCDEJ', ' 0123 4567 89ab cdej\n', 'o123-4567-89ab-cdej', 'O123-4567-89ab-cdej', '0i23-4567-89ab-cdej', '0L23-4567-89ab-cdej']) t.equal(hash(copied), known, copied);
  for (const other of ['0123-4567-89ab-cdek', '0123-4567-89ab-cde', '']) t.not(hash(other), known);
  t.not(hash('0123-4567-89ab-cdej', 'bob'), known, 'those of one account are none of another');
  t.end();
});
