import fc from 'fast-check';
import { Type } from '@sinclair/typebox';
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { ApiError } from '../../../src/errors.js';
import { json, type Call, type Headers } from '../../../src/http/call.js';
import { COOKIES, parseCookies, setCookie, type CookieKind } from '../../../src/http/cookies.js';
import { demandOwnSite, demandXsrf, issueXsrf, isXsrfOf } from '../../../src/http/csrf.js';
import { endpoint, row } from '../../../src/http/endpoint.js';
import { isBadlyFramed } from '../../../src/http/framing.js';
import { createPaths } from '../../../src/http/paths.js';
import { createPipeline } from '../../../src/http/pipeline.js';
import { createKeyring } from '../../../src/keyring.js';
import { createLog } from '../../../src/log.js';
import { figure } from '../../support/figures.js';
import { anyText, holds, holdsLater, mutantOf, textOf, thrown } from '../../support/fuzz.js';

const sent = (lines: [string, string][]): Headers => ({
  get: (name) => lines.filter(([one]) => one === name).map(([, value]) => value).join(', ') || undefined,
  twice: (name) => lines.filter(([one]) => one === name).length > 1,
});
const isRefusal = (error: unknown, code: string): boolean => error instanceof ApiError && error.code === code;

// RFC 6265 §4.1.1
const name = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}$/);
const value = fc.stringMatching(/^[!#-+\x2d-:<-[\]-~]{0,20}$/);

t.test('cookies: what is written is read, and a name that stands twice is told', (t) => {
  let tried = 0;
  tried += holds(t, 'pairs come back', fc.uniqueArray(fc.tuple(name, value), { selector: ([one]) => one, maxLength: 20 }), (pairs) => {
    const { cookies, tossed } = parseCookies(pairs.map(([one, text]) => `${one}=${text}`).join('; '));
    return isDeepStrictEqual(cookies, new Map(pairs)) && tossed.size === 0;
  });
  tried += holds(t, 'our own come back', fc.tuple(fc.constantFrom(...(Object.keys(COOKIES) as CookieKind[])), fc.stringMatching(/^[\w.-]{1,200}$/), fc.nat()), ([kind, text, age]) => parseCookies(setCookie(kind, text, age).split(';')[0]).cookies.get(COOKIES[kind].name) === text);
  tried += holds(t, 'of any text the first value counts, and every name that stands twice is tossed', fc.oneof(anyText, textOf(';', '=', ' ', ',', '"', 'idp_at', 'idp_rt=', '; idp_at=', '\t', '\\')), (text) => {
    const { cookies, tossed } = parseCookies(text);
    const pairs = text.split(';').flatMap((part) => (part.includes('=') ? [[part.slice(0, part.indexOf('=')).trim(), part.slice(part.indexOf('=') + 1).trim()] as const] : []));
    const names = pairs.map(([one]) => one);
    return cookies.size === new Set(names).size && [...cookies].every(([one, first]) => pairs.find(([other]) => other === one)![1] === first) && names.every((one) => tossed.has(one) === names.filter((other) => other === one).length > 1);
  });
  figure(t, 'T25', { did: `${tried} generated Cookie headers`, figure: 'each name that stands twice was told', ok: tried > 0 });
  t.end();
});

t.test('framing: only one length, or one chunked coding, passes', (t) => {
  const coding = fc.tuple(fc.constant('transfer-encoding'), fc.oneof(fc.constantFrom('chunked', 'Chunked', 'chunked, chunked', 'gzip', 'identity', ' chunked', 'chunked;q=1', 'xchunked', 'chunked\t'), anyText));
  const length = fc.tuple(fc.constant('content-length'), fc.oneof(fc.nat().map(String), fc.constantFrom('+1', '-1', '0x1', '1 1', '1,1', '01', '1e3', '9'.repeat(16), '٣', '1\u00a0'), anyText));
  const type = fc.tuple(fc.constant('content-type'), fc.constantFrom('application/json', 'text/plain'));
  const tried = holds(t, 'the same verdict as by a list of what is good', fc.array(fc.oneof(coding, length, type), { maxLength: 4 }), (lines) => {
    const of = (wanted: string): string[] => lines.filter(([one, text]) => one === wanted && (text !== '' || lines.filter(([other]) => other === wanted).length > 1)).map(([, text]) => text);
    const [codings, lengths, types] = [of('transfer-encoding'), of('content-length'), of('content-type')];
    const isBare = codings.length === 0 && lengths.length === 0;
    const isMeasured = codings.length === 0 && lengths.length === 1 && /^[0-9]{1,15}$/.test(lengths[0]!);
    const isChunked = lengths.length === 0 && codings.length === 1 && codings[0]!.toLowerCase() === 'chunked';
    return isBadlyFramed(sent(lines)) === !((isBare || isMeasured || isChunked) && types.length < 2);
  });
  figure(t, 'T46', { did: `${tried} generated combinations of lengths and codings`, figure: 'judged as by a list of what is good', ok: tried > 0 });
  t.end();
});

t.test('CSRF: nothing but the value of the session, from its own site, passes', (t) => {
  const keyring = createKeyring(randomBytes(32), null);
  const stranger = createKeyring(randomBytes(32), null);
  const call = (lines: [string, string][], cookie: string | undefined): Call => ({ headers: sent(lines), ...parseCookies(cookie) }) as unknown as Call;
  const session = fc.uuid();
  let tried = 0;
  tried += holds(t, 'a value proves its own session alone', fc.tuple(session, session), ([one, other]) => isXsrfOf(keyring, one, issueXsrf(keyring, one)) && !isXsrfOf(stranger, one, issueXsrf(keyring, one)) && (one === other || !isXsrfOf(keyring, other, issueXsrf(keyring, one))));
  tried += holds(t, 'any other text proves nothing', fc.tuple(session, fc.oneof(anyText, fc.stringMatching(/^[\w-]{64}$/))), ([one, text]) => !isXsrfOf(keyring, one, text));
  tried += holds(t, 'a value with one letter changed proves nothing, unless it says the same bytes', session.chain((one) => fc.tuple(fc.constant(one), mutantOf(fc.constant(issueXsrf(keyring, one)), fc.stringMatching(/^[\w-]$/)))), ([one, { text, mutant }]) => Buffer.from(text, 'base64url').equals(Buffer.from(mutant, 'base64url')) || !isXsrfOf(keyring, one, mutant));
  tried += holds(t, 'header and cookie must be the same good value', fc.tuple(session, anyText, anyText), ([one, header, cookie]) => isRefusal(thrown(() => demandXsrf(keyring, call([['x-xsrf-token', header]], `XSRF-TOKEN=${cookie}`), one)), 'CSRF_FAILED'));
  const origin = fc.oneof(anyText, fc.webUrl(), fc.constantFrom('https://app.example', 'http://app.example', 'https://app.example.', 'https://app.example:443', 'HTTPS://APP.EXAMPLE', 'null', 'https://app.example https://evil.example', 'https://ok.example', 'https://ok.example.evil.example'));
  tried += holds(t, 'of origins only the own and the listed pass', fc.tuple(origin, fc.boolean(), fc.constantFrom('app.example', 'evil.example', '')), ([text, tls, host]) => {
    const error = thrown(() => demandOwnSite(call([['origin', text], ['host', host]], undefined), ['https://ok.example'], tls));
    const isFine = text === '' || text === 'https://ok.example' || text === `https://${host}` || (!tls && text === `http://${host}`);
    return isFine ? error === undefined : isRefusal(error, 'CSRF_FAILED');
  });
  figure(t, 'T53', { did: `${tried} generated values, headers and origins`, figure: 'none passed but the own', ok: tried > 0 });
  t.end();
});

t.test('paths: a template and a path are compared segment by segment', (t) => {
  const segment = fc.constantFrom('a', 'b', 'a.b', '{x}', '{y}', 'A', '%2F', '', '..', '*', '(', '\n');
  const path = (segments: string[]): string => `/${segments.join('/')}`;
  const templates = fc.uniqueArray(fc.uniqueArray(segment, { minLength: 1, maxLength: 3 }).filter((segments) => !segments.includes('')).map(path), { maxLength: 4 });
  const tried = holds(t, 'as by hand', fc.tuple(templates, fc.array(segment, { maxLength: 4 }).map(path)), ([all, asked]) => {
    const found = createPaths(new Map(all.map((one) => [one, one])))(asked);
    const fits = (template: string): boolean => {
      const [wanted, given] = [template.split('/'), asked.split('/')];
      return wanted.length === given.length && wanted.every((part, i) => (/^\{\w+\}$/.test(part) ? given[i] !== '' : part === given[i]));
    };
    const expected = all.includes(asked) && !asked.includes('{') ? asked : all.find((template) => template.includes('{') && fits(template));
    return (found?.target ?? undefined) === expected && Object.values(found?.params ?? {}).every((part) => !part.includes('/') && part !== '');
  });
  t.ok(tried);
  t.end();
});

t.test('the query is read as URLSearchParams reads it, and the delivery header has two values', async (t) => {
  const echo = endpoint({ tag: 'Operations', summary: 'Say what was read', query: Type.Object({}), replies: { 200: Type.Object({ query: Type.Unknown(), delivery: Type.String() }) }, errors: [], handle: (_, call) => Promise.resolve(json(200, { query: call.query, delivery: call.delivery })) });
  const pipeline = createPipeline([row('get', '/echo', 'anyone', 'safe', null, 'tokens', echo)], {}, {
    config: { trustedProxies: [], corsOrigins: [], trustTlsProxy: false, tlsCertFile: null, cookieDomainXsrf: null },
    keyring: createKeyring(randomBytes(32), null),
    log: createLog('silent'),
    guards: { authenticate: () => Promise.resolve(null), limit: () => Promise.resolve(), refreshSession: () => null },
    observe: () => undefined,
    strict: true,
  });
  const ask = async (query: string, lines: [string, string][]) => {
    const { status, body } = await pipeline.handle({ requestId: 'r', receivedAt: performance.now(), method: 'GET', path: '/echo', query, headers: sent(lines), peer: '127.0.0.1', body: Buffer.alloc(0), gone: () => new AbortController().signal });
    return { status, body: JSON.parse(String(body)) as Record<string, unknown> };
  };
  const queries = fc.oneof(anyText, textOf('a=', '&', '=', 'b', '%', '%00', '%ff', '%2', '+', '__proto__=1', 'constructor=1', 'a[b]=1', ';', '#', '?'), fc.webQueryParameters());
  let tried = 0;
  tried += await holdsLater(t, 'a query', queries, async (query) => {
    const { status, body } = await ask(query, []);
    const pairs = [...new URLSearchParams(query)];
    if (new Set(pairs.map(([one]) => one)).size < pairs.length && status === 400) return body['code'] === 'INVALID_REQUEST';
    return status === 200 && isDeepStrictEqual(new Map(Object.entries(body['query'] as object)), new Map(pairs.filter(([one]) => one !== '__proto__')));
  });
  tried += await holdsLater(t, 'a delivery', fc.oneof(anyText, fc.constantFrom('json', 'cookie', 'Cookie', 'json, cookie', ' json', 'constructor', '__proto__')), async (delivery) => {
    const { status, body } = await ask('', [['x-token-delivery', delivery]]);
    return ['json', 'cookie', ''].includes(delivery) ? status === 200 && body['delivery'] === (delivery || 'json') : status === 400;
  });
  t.equal(({} as Record<string, unknown>)['polluted'], undefined);
  figure(t, 'T43', { did: `${tried} generated queries and delivery headers`, figure: 'read as URLSearchParams reads them, or refused', ok: tried > 0 });
});
