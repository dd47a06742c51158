import t from 'tap';
import { createDocument } from '../../src/openapi/document.js';
import { OPS_ROUTES } from '../../src/ops/routes.js';
import { PUBLIC_ROUTES } from '../../src/routes.js';
import { startApp } from '../support/app.js';
import { figure, scaled } from '../support/figures.js';
import { bodyOf, isForUsers, probesOf, signIn, target, type Probe } from '../support/probes.js';
import { exchange, request } from '../support/raw.js';

const JSON_TYPE = 'Content-Type: application/json';

/** Bodies that no client of ours sends, in bytes as they travel. */
const BODIES = ['', ' ', '{', '}', '[]', 'null', '"x"', '0', 'true', '{}', '[{}]', '['.repeat(9), '['.repeat(16_000), '{"a":'.repeat(3_000), '{"a":1,"a":2}', '{"__proto__":{"id":1}}', '{"constructor":{"prototype":{}}}', '\u00ef\u00bb\u00bf{}', '{"email":1e400}', '{"email":"\\ud800","password":"x"}', '\u00ff\u00fe{}', '\0', '{"email":"a\nb"}', 'email=a&password=b', '<a/>', `"${'\\u0000'.repeat(2_000)}"`, `{"${'k'.repeat(10_000)}":1}`, '{"email":{"$ne":null},"password":{"$ne":null},"token":{"$gt":""}}'];
/** What stands in the place of one member of a good body. */
const VALUES: unknown[] = [null, 0, -1, 1e21, true, [], {}, [[]], '', ' ', '\u0000', 'x'.repeat(12_000), "' OR 1=1 -- ", '\r\nSet-Cookie: a=b', '😀'.repeat(300), 'a@b@c', '\u202e', '__proto__', '${7*7}{{7*7}}', '../../etc/passwd'];
const HEADERS: string[][] = [
  ...['Bearer', 'Bearer ', 'bearer x', 'Bearer a b', 'Basic eDp5', `Bearer ${'a.'.repeat(1_000)}`, 'Bearer eyJhbGciOiJub25lIn0.e30.', '\u00ff', ',', 'Negotiate'].map((value) => [`Authorization: ${value}`]),
  ['Authorization: Bearer a', 'Authorization: Bearer b'],
  ...['idp_at=a; idp_at=b', '=;=;;', ';'.repeat(3_000), `idp_at=${'x'.repeat(8_000)}`, 'idp_rt=%00; XSRF-TOKEN=%0d%0a', '\u00fe=\u00ff', 'idp_at="a"; idp_rt; XSRF-TOKEN='].map((value) => [`Cookie: ${value}`]),
  ...['text/plain', 'application/json; charset=utf-16', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded', '', 'application/json, text/plain'].map((value) => [`Content-Type: ${value}`]),
  ...['xml', 'Cookie', 'cookie, json', ''].map((value) => [`X-Token-Delivery: ${value}`]),
  ['X-Token-Delivery: cookie', 'X-Token-Delivery: json'],
  ['X-Token-Delivery: cookie', 'Cookie: idp_rt=a; idp_jti=b; XSRF-TOKEN=c', 'X-XSRF-Token: c'],
  ...['null', 'https://evil.example', '://', 'https://localhost'].map((value) => [`Origin: ${value}`, 'X-Token-Delivery: cookie']),
  ['Sec-Fetch-Site: cross-site', 'X-Token-Delivery: cookie'],
  ...["'; DROP TABLE users; --", '1.1.1.1,'.repeat(900), '::ffff:1.2.3.4%eth0', '[', '0x7f.1'].map((value) => [`X-Forwarded-For: ${value}`]),
  ...['for="[', 'for=;by=;', 'for="\\"', 'for=unknown'].map((value) => [`Forwarded: ${value}`]),
  ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13'],
  ['X-HTTP-Method-Override: DELETE', 'X-Original-URL: /metrics', 'X-Rewrite-URL: /metrics'],
  ['Content-Encoding: gzip'],
  ['Range: bytes=0-1', 'If-None-Match: *', 'If-Modified-Since: x', 'Accept: text/html', 'Accept-Language: \u00ff'],
  ['User-Agent: ' + 'Mozilla/5.0 ('.repeat(500)],
  Array.from({ length: 80 }, (_, i) => `X-${i}: ${i}`),
];
const PATHS: ((path: string) => string)[] = [
  (path) => `${path}/`,
  (path) => `/${path}`,
  (path) => `${path}/..`,
  (path) => path.replace('/', '/./'),
  (path) => path.toUpperCase(),
  (path) => `${path}%00`,
  (path) => `${path};a=b`,
  (path) => `${path}?`,
  (path) => `${path}?__proto__=1&constructor=2&a=1&a=2`,
  (path) => `${path}?format=%ff%00&limit=-1&cursor=${'x'.repeat(64)}&redirect_uri=javascript:1`,
  (path) => `${path}?${'a'.repeat(8_000)}`,
  (path) => `${path}?${'a=&'.repeat(2_000)}`,
  (path) => `${path}?cursor=AAAA&limit=1e9`,
  (path) => path.replaceAll('a', '%61'),
  (path) => `${path}\u00ff`,
  (path) => `${path}\\`,
];

t.test('whatever is sent to an endpoint is answered, as the document says, and never with 500', { timeout: scaled(90_000, 300_000) }, async (t) => {
  const service = await startApp(t, { LIMIT_OAUTH: '0' });
  const caller = await signIn(service);
  const [pub, ops] = [PUBLIC_ROUTES, OPS_ROUTES].map((routes) => probesOf(createDocument(routes)));
  const listeners: [number, Probe[]][] = [[service.app.port, pub!], [service.app.opsPort, ops!]];
  const wrong: string[] = [];
  let asked = 0;

  async function ask(port: number, probe: Probe, path: string, headers: string[], body: string | undefined, what: string): Promise<void> {
    asked += 1;
    const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
    const bytes = Buffer.from(request(`${probe.method} ${path}`, [...headers, ...length]) + (body ?? ''), 'latin1');
    // A reply that the document does not declare fails here too: the socket is witnessed.
    const status = await exchange(port, bytes).then((reply) => reply.status, (error: unknown) => String(error).slice(0, 200));
    if (typeof status === 'string' || status >= 500) wrong.push(`${probe.method} ${probe.path} with ${what.slice(0, 80)}: ${status}`);
  }
  const bearer = `Authorization: ${caller.bearer['authorization']!}`;

  for (const [port, probes] of listeners) {
    for (const [n, probe] of probes.entries()) {
      const path = target(probe);
      // Whoever ends the session of the caller would spare the others most of the work.
      const own = isForUsers(probe) && !/logout|sessions/.test(probe.path) ? [bearer] : [];
      const good = bodyOf(probe, { email: `nobody${n}@example.com`, currentPassword: 'wrong' });
      const bodied = probe.method === 'GET' ? [] : good ? BODIES : BODIES.slice(0, 3);
      const work: (() => Promise<void>)[] = [
        ...bodied.map((body) => () => ask(port, probe, path, [...own, JSON_TYPE], body, `the body ${body}`)),
        ...Object.keys(good ?? {}).flatMap((name) => VALUES.map((value) => () => ask(port, probe, path, [...own, JSON_TYPE], Buffer.from(JSON.stringify({ ...good, [name]: value })).toString('latin1'), `${name} ${JSON.stringify(value)}`))),
        ...HEADERS.map((headers) => () => ask(port, probe, path, [...(headers.some((one) => /^(Authorization|Cookie)/.test(one)) ? [] : own), ...(good && !headers.some((one) => one.startsWith('Content-Type')) ? [JSON_TYPE] : []), ...headers], good && JSON.stringify(good), headers.join(', '))),
        ...PATHS.map((change) => () => ask(port, probe, change(path), [...own, JSON_TYPE], good && JSON.stringify(good), change(probe.path))),
      ];
      // In the short run each endpoint gets its share of every list.
      const chosen = work.filter((_, i) => (i + n) % scaled(6, 1) === 0);
      for (let i = 0; i < chosen.length; i += 8) await Promise.all(chosen.slice(i, i + 8).map((one) => one()));
    }
  }

  t.same(wrong, []);
  t.equal((await service.client().request('GET', '/health/live')).status, 200);
  t.equal((await caller.client.profile(caller.bearer['authorization']!.slice(7))).status, 200, 'the caller is still signed in');
  figure(t, 'T57', { did: `${asked} hostile bodies, headers and paths, to each of ${pub!.length} public and ${ops!.length} ops endpoints`, figure: `${wrong.length} without a reply, with 5xx or with one that the document does not declare`, ok: wrong.length === 0 });
});
