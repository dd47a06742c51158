import fc from 'fast-check';
import { generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { readAccessToken } from '../../../src/auth/access-token.js';
import { hasJti, mintRefreshToken, openSuccessor, readRefreshToken, sealSuccessor } from '../../../src/auth/refresh-token.js';
import { createKeyring, sha256 } from '../../../src/keyring.js';
import { figure } from '../../support/figures.js';
import { anyText, holds, holdsLater, mutantOf, textOf } from '../../support/fuzz.js';

const keyring = createKeyring(randomBytes(32), null);
const stranger = createKeyring(randomBytes(32), null);
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const minted = fc.tuple(fc.uuid(), fc.nat(0xffffffff), secret).map(([sessionId, generation, bytes]) => mintRefreshToken(keyring, sessionId, generation, bytes));
const letter = fc.stringMatching(/^[\w-]$/);

t.test('refresh tokens: what was minted here is read, and no other text', (t) => {
  let tried = 0;
  tried += holds(t, 'a token comes back', minted, (token) => {
    const read = readRefreshToken(keyring, token.text);
    return read !== null && read.sessionId === token.sessionId && read.generation === token.generation && read.secret.equals(token.secret) && hasJti(keyring, read, token.jti) && readRefreshToken(stranger, token.text) === null;
  });
  tried += holds(t, 'with anything changed it is none', mutantOf(minted.map(({ text }) => text), fc.oneof(letter, fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }))), ({ text, mutant }) => text === mutant || readRefreshToken(keyring, mutant) === null);
  tried += holds(t, 'any text is none', fc.oneof(anyText, fc.stringMatching(/^[\w-]{91}$/)), (text) => readRefreshToken(keyring, text) === null);
  tried += holds(t, 'a jti belongs to its own token alone', fc.tuple(minted, minted, anyText), ([one, other, text]) => (one.text === other.text || !hasJti(keyring, one, other.jti)) && !hasJti(keyring, one, text));
  tried += holds(t, 'the seal of a successor opens for its predecessor alone', fc.tuple(minted, minted, secret), ([one, other, next]) => {
    const seal = sealSuccessor(keyring, one, next);
    return openSuccessor(keyring, one, seal, sha256(next))!.equals(next) && (one.text === other.text || openSuccessor(keyring, other, seal, sha256(next)) === null);
  });
  figure(t, 'T18', { did: `${tried} generated refresh tokens, and texts that are nearly one`, figure: 'none read but those minted', ok: tried > 0 });
  t.end();
});

t.test('sealed values, of which cursors are one: what is sealed opens in its context, and with any bit changed not at all', (t) => {
  const bytes = fc.uint8Array({ maxLength: 64 }).map((one) => Buffer.from(one));
  let tried = 0;
  tried += holds(t, 'it opens', fc.tuple(bytes, anyText, anyText), ([plain, context, other]) => {
    const sealed = keyring.seal('cursor', plain, context);
    // A context is authenticated as UTF-8, in which all half characters are the same.
    const isOther = !Buffer.from(context).equals(Buffer.from(other));
    return keyring.open('cursor', sealed, context)!.equals(plain) && (!isOther || keyring.open('cursor', sealed, other) === null) && keyring.open('totp-secret', sealed, context) === null && stranger.open('cursor', sealed, context) === null;
  });
  tried += holds(t, 'or it does not', fc.tuple(bytes, fc.nat(), fc.nat(7)), ([plain, at, bit]) => {
    const sealed = keyring.seal('cursor', plain, 'x');
    sealed[at % sealed.length]! ^= 1 << bit;
    return keyring.open('cursor', sealed, 'x') === null;
  });
  tried += holds(t, 'nor does any text', fc.oneof(anyText, fc.base64String()), (text) => keyring.open('cursor', Buffer.from(text, 'base64url'), 'x') === null);
  t.ok(tried);
  t.end();
});

t.test('access tokens: jose accepts whatever is accepted here, and nothing is thrown', async (t) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const kid = 'k'.repeat(43);
  const now = Math.floor(Date.now() / 1000);
  const needs = {
    config: { jwtIssuer: 'portcullis', jwtAudience: 'portcullis' },
    clock: { now: () => now * 1000 },
    signingKeys: { find: async (name: string) => (name === kid ? { alg: 'ES256', key: publicKey } : null) },
  } as unknown as Parameters<typeof readAccessToken>[0];
  const sign = (header: Record<string, unknown>, claims: Record<string, unknown>): Promise<string> => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt', ...header }).sign(privateKey);
  const good = { iss: 'portcullis', aud: 'portcullis', sub: 'a', sid: 'b', iat: now, exp: now + 900 };
  const token = await sign({}, good);
  t.match(await readAccessToken(needs, token), { sub: 'a', sid: 'b', exp: now + 900, kid });
  const isAccepted = (text: string): Promise<boolean> => jwtVerify(text, publicKey, { algorithms: ['ES256'], issuer: 'portcullis', audience: 'portcullis', typ: 'at+jwt', currentDate: new Date(now * 1000) }).then(() => true, () => false);

  let tried = 0;
  tried += await holdsLater(t, 'a token with one place changed', mutantOf(fc.constant(token), fc.oneof(letter, fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }))), async ({ mutant }) => (await readAccessToken(needs, mutant)) === null || (await isAccepted(mutant)));
  tried += await holdsLater(t, 'parts in any order', textOf(...token.split('.'), '.', '..', 'e30', 'eyJhbGciOiJub25lIn0'), async (text) => (await readAccessToken(needs, text)) === null || (await isAccepted(text)));
  tried += await holdsLater(t, 'any text', anyText, async (text) => (await readAccessToken(needs, text)) === null);
  const claim = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom(now, now + 900, now - 1, 'portcullis', ['portcullis']));
  tried += await holdsLater(t, 'any claims, well signed', fc.dictionary(fc.constantFrom(...Object.keys(good), 'nbf', 'roles'), claim, { maxKeys: 3 }), async (changes) => {
    // What jose will not write is none of our readers' business.
    const text = await sign({}, { ...good, ...changes }).catch(() => null);
    if (text === null) return true;
    const read = await readAccessToken(needs, text);
    return read === null || (typeof read.sub === 'string' && typeof read.sid === 'string' && read.exp > now && (await isAccepted(text)));
  });
  figure(t, 'T54', { did: `${tried} generated tokens, held against jose`, figure: 'none accepted that jose refuses', ok: tried > 0 });
});
