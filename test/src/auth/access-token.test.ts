import { createHmac, createSign, generateKeyPairSync, sign as signWith, type KeyObject } from 'node:crypto';
import t from 'tap';
import { startApp } from '../../support/app.js';
import type { Issued } from '../../support/client.js';
import { figure, scaled } from '../../support/figures.js';

const { app, client, account } = await startApp(t);
const { keyring, mysql, signingKeys } = app.needs;
const { id, email, password } = await account();
const issued = (await client().login(email, password)).body as unknown as Issued;
const [head, body, signature] = issued.accessToken.split('.') as [string, string, string];
type Json = Record<string, unknown>;
const header = decode(head);
const claims = decode(body);

const { privateKey: pem, kid } = signingKeys.current();
const [stored] = await mysql.rows<{ pub: string }>('SELECT public_key AS pub FROM signing_keys WHERE kid = ?', [kid]);
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' });

function decode(part: string): Json {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Json;
}
const encode = (value: unknown): string => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** A token signed with the service's own key, so that nothing but what was changed can be at fault. */
function own(changedHeader: Json, changedClaims: Json = {}): string {
  const input = `${encode({ ...header, ...changedHeader })}.${encode({ ...claims, ...changedClaims })}`;
  return `${input}.${createSign('SHA256').update(input).sign({ key: pem, dsaEncoding: 'ieee-p1363' }, 'base64url')}`;
}
function by(key: KeyObject, changedHeader: Json = {}): string {
  const input = `${encode({ ...header, ...changedHeader })}.${body}`;
  return `${input}.${signWith('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}
function hmac(secret: string | Buffer, alg = 'HS256'): string {
  const input = `${encode({ ...header, alg })}.${body}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}
const unsigned = (alg: unknown, tail = ''): string => `${encode({ ...header, alg })}.${body}.${tail}`;

const now = Math.floor(Date.now() / 1000);
const jwk = stranger.publicKey.export({ format: 'jwk' });

const forgeries: Record<string, string> = {
  'alg none': unsigned('none'),
  'alg None': unsigned('None'),
  'alg nOnE': unsigned('nOnE'),
  'alg none with the old signature': unsigned('none', signature),
  'alg null': unsigned(null),
  'alg a list': unsigned(['ES256'], signature),
  'alg empty': unsigned('', signature),
  'no signature': `${head}.${body}.`,
  'two parts': `${head}.${body}`,
  'four parts': `${issued.accessToken}.x`,
  'five parts': `${issued.accessToken}.x.y`,
  'a trailing dot': `${issued.accessToken}.`,
  'HS256 with the public key as its secret': hmac(stored!.pub),
  'HS256 with the trimmed public key': hmac(stored!.pub.trim()),
  'HS256 with the raw public key': hmac(Buffer.from(stored!.pub.replace(/-----[^-]+-----|\s/g, ''), 'base64')),
  'HS256 with an empty secret': hmac(''),
  'HS256 with the kid': hmac(kid),
  'HMAC under the name ES256': hmac(stored!.pub, 'ES256'),
  'another algorithm named': own({ alg: 'ES384' }),
  'RS256 named': own({ alg: 'RS256' }),
  'EdDSA named': own({ alg: 'EdDSA' }),
  'a key of a stranger': by(stranger.privateKey),
  'a stranger and his jwk': by(stranger.privateKey, { jwk }),
  'a stranger and his jku': by(stranger.privateKey, { jku: 'https://evil.example/keys' }),
  'own key with jwk': own({ jwk }),
  'own key with jku': own({ jku: 'https://evil.example/keys' }),
  'own key with x5u': own({ x5u: 'https://evil.example/cert' }),
  'own key with x5c': own({ x5c: ['MII'] }),
  'own key with crit': own({ crit: ['exp'] }),
  'own key with empty crit': own({ crit: [] }),
  'own key with b64 false': own({ b64: false, crit: ['b64'] }),
  'no kid': own({ kid: undefined }),
  'an unknown kid': own({ kid: 'x' }),
  'kid as a path': own({ kid: '../../../../dev/null' }),
  'kid as SQL': own({ kid: "' UNION SELECT 1 -- " }),
  'kid a number': own({ kid: 1 }),
  'kid __proto__': own({ kid: '__proto__' }),
  'typ JWT': own({ typ: 'JWT' }),
  'typ of an id token': own({ typ: 'id+jwt' }),
  'no typ': own({ typ: undefined }),
  'expired': own({}, { exp: now - 60 }),
  'exp as text': own({}, { exp: String(now + 900) }),
  'exp null': own({}, { exp: null }),
  'no exp': own({}, { exp: undefined }),
  'no iat': own({}, { iat: undefined }),
  'not yet valid': own({}, { nbf: now + 600 }),
  'another issuer': own({}, { iss: 'https://evil.example' }),
  'no issuer': own({}, { iss: undefined }),
  'issuer a list': own({}, { iss: ['portcullis'] }),
  'another audience': own({}, { aud: 'other' }),
  'no audience': own({}, { aud: undefined }),
  'no sub': own({}, { sub: undefined }),
  'another sub': own({}, { sub: '00000000-0000-4000-8000-000000000000' }),
  'sub a number': own({}, { sub: 1 }),
  'no sid': own({}, { sid: undefined }),
  'an unknown sid': own({}, { sid: '00000000-0000-4000-8000-000000000000' }),
  'sid a list': own({}, { sid: [claims['sid']] }),
  'a refresh token': issued.refreshToken,
  'a jti': issued.jti,
  'claims changed under the old signature': `${head}.${encode({ ...claims, sub: id, roles: ['admin'] })}.${signature}`,
  'a signature of zeros': `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
  'a DER signature': ((input) => `${input}.${createSign('SHA256').update(input).sign(pem, 'base64url')}`)(`${head}.${body}`),
  'a doubled signature': `${head}.${body}.${signature}${signature}`,
  'claims that are a list': ((input) => `${input}.${createSign('SHA256').update(input).sign({ key: pem, dsaEncoding: 'ieee-p1363' }, 'base64url')}`)(`${head}.${encode([])}`),
  'claims that are no JSON': ((input) => `${input}.${createSign('SHA256').update(input).sign({ key: pem, dsaEncoding: 'ieee-p1363' }, 'base64url')}`)(`${head}.${encode('x')}`),
  'longer than any token': own({}, { pad: 'x'.repeat(5000) }),
  'nothing but dots': '..',
  'a word': 'token',
};

t.test('a token with nothing changed, signed here in the same way, is accepted', async (t) => {
  t.equal((await client().profile(own({}))).status, 200);
  t.equal((await client().profile(own({}, { exp: now - 1 }))).status, 401, 'nor a second longer: all nodes go by the clock of the database');
});

t.test(`none of ${Object.keys(forgeries).length} forged tokens is accepted, as header or as cookie`, async (t) => {
  const from = client();
  let accepted = 0;
  for (const [what, token] of Object.entries(forgeries)) {
    const byHeader = await from.request('GET', '/api/auth/profile', { headers: { authorization: `Bearer ${token}` } });
    t.match(byHeader, { status: 401, body: { code: 'UNAUTHENTICATED' } }, what);
    const byCookie = await from.request('GET', '/api/auth/profile', { headers: { cookie: `idp_at=${token}` } });
    t.equal(byCookie.status, 401, what);
    if (byHeader.status === 200 || byCookie.status === 200) accepted += 1;
  }
  figure(t, 'T54', { did: `${Object.keys(forgeries).length} forged tokens, as header and as cookie`, figure: `${accepted} accepted`, ok: accepted === 0 });
});

t.test('forged tokens cost less than a millisecond each', async (t) => {
  const { readAccessToken } = await import('../../../src/auth/access-token.js');
  for (const token of Object.values(forgeries)) await readAccessToken(app.needs, token);
  const started = performance.now();
  for (const token of Object.values(forgeries)) await readAccessToken(app.needs, token);
  const each = (performance.now() - started) / Object.keys(forgeries).length;
  figure(t, 'T54', { did: 'the same, read directly', figure: `${each.toFixed(3)} ms each`, ok: each < scaled(10, 1) });
});

for (const alg of ['EdDSA', 'RS256']) {
  t.test(`${alg} can be chosen; its tokens name it and are accepted`, async (t) => {
    const other = await startApp(t, { JWT_ALG: alg });
    const user = await other.account();
    const { accessToken } = (await other.client().login(user.email, user.password)).body as unknown as Issued;
    t.match(decode(accessToken.split('.')[0]!), { alg, typ: 'at+jwt' });
    t.equal((await other.client().profile(accessToken)).status, 200);
  });
}

t.test('the claims are those of RFC 9068, and nothing else', (t) => {
  t.same(Object.keys(header).sort(), ['alg', 'kid', 'typ']);
  t.same(Object.keys(claims).sort(), ['amr', 'aud', 'auth_time', 'exp', 'iat', 'iss', 'jti', 'roles', 'sid', 'sub']);
  t.match(claims, { iss: 'portcullis', aud: 'portcullis', sub: id, amr: ['pwd'], roles: [] });
  t.equal((claims['exp'] as number) - (claims['iat'] as number), 900);
  t.end();
});

t.test('the private key is sealed at rest', async (t) => {
  const [row] = await mysql.rows<{ sealed: Buffer }>('SELECT private_key AS sealed FROM signing_keys WHERE kid = ?', [kid]);
  t.notOk(row!.sealed.includes('PRIVATE KEY'));
  t.equal(keyring.open('signing-key', row!.sealed, kid)!.toString(), pem);
});
