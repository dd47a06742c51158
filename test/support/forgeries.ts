import { createHmac, createPublicKey, createSign, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';

type Json = Record<string, unknown>;

/** A token that is good, and the key that signed it, so that nothing but what was changed can be at fault. */
export interface Original {
  token: string;
  /** PEM of the private key (ES256). */
  key: string;
  /** Now, in seconds. */
  now: number;
  /** Texts that are no access tokens but that the service issues. */
  others: Record<string, string>;
}

const encode = (value: unknown): string => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const decode = (part: string): Json => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json;
const show = (value: unknown): string => (value === undefined ? 'none' : JSON.stringify(value).slice(0, 40));

const ALGS = ['none', 'None', 'NONE', 'nOnE', 'none ', '', 'HS256', 'HS384', 'HS512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256K', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'Ed448', 'ML-DSA-44', 'es256', 'Es256', 'ES256 ', 'ES256\0', 'ES-256', 'SHA256withECDSA', 'dir', 'A128KW', 'RSA-OAEP', 'ECDH-ES', null, undefined, 0, true, [], ['ES256'], {}, { ES256: 1 }];
const KIDS = (kid: string): unknown[] => [undefined, null, '', ' ', 0, 1, true, [], [kid], {}, '../../../../dev/null', '/dev/null', 'file:///etc/passwd', "' UNION SELECT 1 -- ", "' OR '1'='1", '__proto__', 'constructor', 'toString', 'hasOwnProperty', `${kid} `, ` ${kid}`, `${kid}\0`, `${kid}.`, kid.slice(0, -1), `${kid}0`, swapCase(kid), encodeURIComponent(`${kid}/`), '*', '%', '\u202e', 'k'.repeat(1000), 'https://evil.example/keys'];
const TYPES = [undefined, null, '', 0, true, [], ['at+jwt'], {}, 'JWT', 'jwt', 'at', 'at+jwt ', ' at+jwt', 'at+jwt\0', 'at+jwt;a=b', 'id+jwt', 'refresh+jwt', 'dpop+jwt', 'logout+jwt', 'secevent+jwt', 'application/jwt', 'text/at+jwt', 'JOSE', 'at_jwt'];
/** Header members that would let a token choose how it is verified. */
const STEERING = ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64'];
const NAMED_ANEW = ['', 'x', ' ', 0, 1, -1, true, false, null, undefined, [], {}, ['portcullis2'], 'PORTCULLIS', 'portcullis ', 'portcullis\0', 'https://evil.example'];
const ID = '00000000-0000-4000-8000-000000000000';
const swapCase = (text: string): string => text.replace(/[a-z]/gi, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));

/** The order of the group of P-256, and the prime of its field (FIPS 186-4, D.1.2.3). */
const N = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');
const P = BigInt('0xffffffff00000001000000000000000000000000ffffffffffffffffffffffff');
const word = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');

/**
 * Tokens of every class that must be refused, by what was done: algorithms, keys, headers, claims, signatures,
 * encodings and forms. Left out is what RFC 7515 lets pass: members that nobody knows, and the second of the two
 * signatures that ECDSA has for each.
 */
export function* forgeriesOf({ token, key, now, others }: Original): Generator<[what: string, token: string]> {
  const [head, body, signature] = token.split('.') as [string, string, string];
  const header = decode(head);
  const claims = decode(body);
  const bytes = Buffer.from(signature, 'base64url');
  const publicPem = createPublicKey(key).export({ type: 'spki', format: 'pem' });
  const signed = (input: string, by: string | KeyObject = key, hash = 'sha256'): string => `${input}.${sign(hash, Buffer.from(input), { key: by as KeyObject, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  const own = (changed: Json, changedClaims: Json = {}): string => signed(`${encode({ ...header, ...changed })}.${encode({ ...claims, ...changedClaims })}`);
  const hmac = (input: string, secret: string | Buffer, hash = 'sha256'): string => `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`;
  const withSignature = (of: Buffer | string): string => `${head}.${body}.${typeof of === 'string' ? of : of.toString('base64url')}`;

  for (const alg of ALGS) {
    const input = `${encode({ ...header, alg })}.${body}`;
    yield [`alg ${show(alg)}, unsigned`, `${input}.`];
    yield [`alg ${show(alg)}, the old signature`, `${input}.${signature}`];
    yield [`alg ${show(alg)}, signed anew`, signed(input)];
    yield [`alg ${show(alg)}, HMAC by the public key`, hmac(input, publicPem)];
  }
  const raw = createPublicKey(key).export({ type: 'spki', format: 'der' });
  for (const [what, secret] of Object.entries({ 'PEM': publicPem, 'trimmed PEM': String(publicPem).trim(), 'DER': raw, 'point': raw.subarray(-65), 'JWK': JSON.stringify(createPublicKey(key).export({ format: 'jwk' })), 'nothing': '', 'the kid': String(header['kid']), 'secret': 'secret' })) {
    for (const hash of ['sha256', 'sha384', 'sha512']) yield [`HMAC ${hash} by ${what}`, hmac(`${encode({ ...header, alg: `HS${hash.slice(3)}` })}.${body}`, secret, hash)];
    yield [`HMAC by ${what} under the name ES256`, hmac(`${head}.${body}`, secret)];
  }

  const strangers: [string, KeyObject][] = [
    ...['P-256', 'P-384', 'P-521', 'secp256k1'].map((namedCurve): [string, KeyObject] => [namedCurve, generateKeyPairSync('ec', { namedCurve }).privateKey]),
    ['Ed25519', generateKeyPairSync('ed25519').privateKey],
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
  ];
  for (const [what, stranger] of strangers) {
    const hash = what === 'Ed25519' ? (null as unknown as string) : 'sha256';
    const jwk = createPublicKey(stranger).export({ format: 'jwk' });
    yield [`a stranger's ${what}`, signed(`${head}.${body}`, stranger, hash)];
    for (const changed of [{ jwk }, { jku: 'https://evil.example/keys' }, { x5c: ['MII'] }, { kid: 'mine' }, { kid: undefined }, { kid: undefined, jwk }]) yield [`a stranger's ${what} with ${show(changed)}`, signed(`${encode({ ...header, ...changed })}.${body}`, stranger, hash)];
  }
  for (const hash of ['sha1', 'sha384', 'sha512']) yield [`signed by ${hash}`, signed(`${head}.${body}`, key, hash)];

  for (const kid of KIDS(String(header['kid']))) yield [`kid ${show(kid)}`, own({ kid })];
  for (const typ of TYPES) yield [`typ ${show(typ)}`, own({ typ })];
  for (const name of STEERING) for (const value of [null, '', 'x', 0, false, [], ['exp'], {}, { kty: 'EC' }, 'https://evil.example']) yield [`${name} ${show(value)}`, own({ [name]: value })];

  for (const name of ['iss', 'aud']) for (const value of NAMED_ANEW) yield [`${name} ${show(value)}`, own({}, { [name]: value })];
  for (const name of ['sub', 'sid']) for (const value of [undefined, null, '', 0, true, [], [claims[name]], {}, ID, `${String(claims[name])} `, `${String(claims[name])}\0`, swapCase(String(claims[name])), `${String(claims[name])}'`, '__proto__']) yield [`${name} ${show(value)}`, own({}, { [name]: value })];
  for (const exp of [undefined, null, '', String(now + 900), true, [], [now + 900], {}, 0, -1, now - 1, now - 60, now - 86_400, -1e300]) yield [`exp ${show(exp)}`, own({}, { exp })];
  for (const iat of [undefined, null, '', String(now), true, [], {}]) yield [`iat ${show(iat)}`, own({}, { iat })];
  for (const nbf of [now + 60, now + 86_400, 1e300, '', String(now), true, [], {}]) yield [`nbf ${show(nbf)}`, own({}, { nbf })];

  for (const length of [0, 1, 2, 16, 31, 32, 33, 48, 63, 65, 66, 70, 71, 72, 73, 96, 128, 132, 256]) {
    yield [`a signature of ${length} bytes`, withSignature(Buffer.concat([bytes, Buffer.alloc(256)]).subarray(0, length))];
    yield [`a signature of ${length} zeros`, withSignature(Buffer.alloc(length))];
  }
  const [r, s] = [bytes.subarray(0, 32), bytes.subarray(32)];
  const odd = { '0': word(0n), '1': word(1n), 'n-1': word(N - 1n), 'n': word(N), 'n+1': word(N + 1n), 'p': word(P), '2^256-1': Buffer.alloc(32, 0xff) };
  for (const [what, value] of Object.entries(odd)) {
    yield [`r = ${what}`, withSignature(Buffer.concat([value, s]))];
    yield [`s = ${what}`, withSignature(Buffer.concat([r, value]))];
    for (const [other, second] of Object.entries(odd)) yield [`r = ${what}, s = ${other}`, withSignature(Buffer.concat([value, second]))];
  }
  yield ['r and s exchanged', withSignature(Buffer.concat([s, r]))];
  yield ['r and s backwards', withSignature(Buffer.concat([Buffer.from(r).reverse(), Buffer.from(s).reverse()]))];
  yield ['r twice', withSignature(Buffer.concat([r, r]))];
  yield ['a doubled signature', withSignature(`${signature}${signature}`)];
  yield ['r and s in hex', withSignature(bytes.toString('hex'))];
  yield ['a DER signature', withSignature(createSign('SHA256').update(`${head}.${body}`).sign(key))];
  yield ['a signature of the header', withSignature(signed(head).split('.')[1]!)];
  yield ['a signature of the claims', withSignature(signed(body).split('.')[1]!)];
  yield ['a signature of the bare text', withSignature(sign('sha256', Buffer.from(`${JSON.stringify(header)}.${JSON.stringify(claims)}`), { key, dsaEncoding: 'ieee-p1363' }))];
  for (let at = 0; at < 64; at += 1) yield [`bit ${at * 8 + (at % 8)} of the signature`, withSignature(Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte))))];
  for (let at = 0; at < head.length; at += 5) yield [`letter ${at} of the header`, `${changed(head, at)}.${body}.${signature}`];
  for (let at = 0; at < body.length; at += 13) yield [`letter ${at} of the claims`, `${head}.${changed(body, at)}.${signature}`];

  for (const [what, claim] of Object.entries({ roles: ['admin'], sub: ID, exp: now + 1e6, amr: ['pwd', 'otp'], sid: ID })) yield [`${what} changed under the old signature`, `${head}.${encode({ ...claims, [what]: claim })}.${signature}`];
  for (const text of ['', '[]', 'null', '1', '"x"', '{', '{}', 'x', '\ufeff{}', '{"alg":"ES256"}', '{"alg":"ES256","kid":1}', `[${JSON.stringify(header)}]`]) yield [`the header ${text.slice(0, 20)}`, signed(`${encode(text)}.${body}`)];
  for (const text of ['', '[]', 'null', '1', '"x"', '{', '{}', 'x', '\ufeff{}', `[${JSON.stringify(claims)}]`, JSON.stringify(JSON.stringify(claims)), JSON.stringify(claims).slice(0, -1)]) yield [`the claims ${text.slice(0, 20)}`, signed(`${head}.${encode(text)}`)];
  const broken = Buffer.from(JSON.stringify({ ...claims, sub: `${String(claims['sub'])}~` })).map((byte) => (byte === 0x7e ? 0xff : byte));
  yield ['claims that are not UTF-8', signed(`${head}.${Buffer.from(broken).toString('base64url')}`)];

  for (const parts of [[], [head], [head, body], ['', '', ''], [head, '', ''], ['', body, ''], ['', '', signature], [head, '', signature], ['', body, signature], [head, body, ''], [head, body, signature, ''], ['', head, body, signature], [head, body, signature, signature], [head, body, '', signature], [head, body, signature, '', ''], [body, head, signature], [signature, body, head], [head, head, signature]]) yield [`the parts ${parts.map((part) => [head, body, signature, ''].indexOf(part)).join(',')}`, parts.join('.')];
  const marks = ['=', '!', '*', '~', '%', '\u00e9', '.', '"', "'", ';', ',', '$'];
  for (const mark of marks) for (const at of [0, head.length, head.length + 1, token.length - 20]) yield [`${mark} at ${at}`, `${token.slice(0, at)}${mark}${token.slice(at)}`];
  yield ['separated by commas', token.replaceAll('.', ',')];
  yield ['in upper case', token.toUpperCase()];
  yield ['percent-encoded', encodeURIComponent(token).replaceAll('.', '%2E')];
  yield ['in base64 once more', encode(token)];
  yield ['in quotes', `"${token}"`];
  yield ['as Bearer twice', `Bearer ${token}`];
  yield ['two tokens', `${token},${token}`];
  yield ['JWS JSON serialization', JSON.stringify({ payload: body, protected: head, signature })];
  yield ['general JWS JSON serialization', JSON.stringify({ payload: body, signatures: [{ protected: head, signature }] })];
  yield ['an SD-JWT', `${token}~`];
  yield ['a JWE', [encode({ alg: 'dir', enc: 'A256GCM', kid: header['kid'] }), '', encode('x'.repeat(12)), body, encode('x'.repeat(16))].join('.')];
  yield ['a JWE with a wrapped key', [encode({ alg: 'RSA-OAEP', enc: 'A256GCM', kid: header['kid'] }), signature, encode('x'.repeat(12)), body, encode('x'.repeat(16))].join('.')];
  yield ['a JWE with PBES2 of many rounds', [encode({ alg: 'PBES2-HS256+A128KW', enc: 'A128GCM', p2c: 2_147_483_647, p2s: 'AAAA' }), signature, encode('x'.repeat(12)), body, encode('x'.repeat(16))].join('.')];
  yield ['a detached payload', signed(`${encode({ ...header, b64: false, crit: ['b64'] })}.`)];
  yield ['a PASETO', `v4.public.${body}${signature}`];
  yield ['longer than any token', own({}, { pad: 'x'.repeat(5000) })];
  yield ['dots alone', '.'.repeat(4000)];
  yield ['deep claims', signed(`${head}.${encode(`${'['.repeat(2000)}${']'.repeat(2000)}`)}`).slice(0, 4096)];
  yield ['a word', 'token'];
  yield* Object.entries(others);
}

const changed = (text: string, at: number): string => `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
