import t, { type Test } from 'tap';
import { ERRORS } from '../../../src/errors.js';
import { OPS_ROUTES } from '../../../src/ops/routes.js';
import { PUBLIC_ROUTES } from '../../../src/routes.js';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { exchange, request, type RawReply } from '../../support/raw.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'CONNECT', 'PROPFIND', 'get'];
const JSON_TYPE = 'Content-Type: application/json';

const one = ({ headers }: RawReply, name: string): string | undefined => {
  const values = headers.get(name) ?? [];
  if (values.length > 1) throw new Error(`${name} stands ${values.length} times`);
  return values[0];
};

/** What contract and RFC 9457 ask of every reply, and of every error. */
function checkReply(t: Test, reply: RawReply, name: string): void {
  t.match(one(reply, 'x-request-id'), UUID, `${name}: request id`);
  // What names its version may be kept.
  t.match(one(reply, 'cache-control'), reply.headers.has('etag') ? /^public, / : /^no-store$/, name);
  t.equal(one(reply, 'x-content-type-options'), 'nosniff', name);
  t.equal(one(reply, 'referrer-policy'), 'no-referrer', name);
  t.equal(one(reply, 'cross-origin-resource-policy'), 'same-site', name);
  t.notOk(reply.headers.has('uwebsockets') || reply.headers.has('server'), `${name}: no banner`);
  if (reply.status < 400 || reply.body === '') return;
  t.equal(one(reply, 'content-type'), 'application/problem+json', name);
  const { code, status, title, requestId } = reply.problem;
  t.same({ status, title }, ERRORS[code as keyof typeof ERRORS], `${name}: the catalogue's status and title`);
  t.equal(status, reply.status, name);
  t.equal(requestId, one(reply, 'x-request-id'), name);
}

t.test('every path answers its own methods, and 405 with Allow to all others', async (t) => {
  const { app } = await startApp(t);
  let [asked, dropped] = [0, 0];
  for (const [port, rows] of [[app.port, PUBLIC_ROUTES], [app.opsPort, OPS_ROUTES]] as const) {
    for (const path of new Set(rows.map((row) => row.path))) {
      const allowed = rows.filter((row) => row.path === path).map((row) => row.method.toUpperCase());
      for (const method of METHODS) {
        const reply = await exchange(port, request(`${method} ${path}`));
        checkReply(t, reply, `${method} ${path}`);
        t.equal(reply.closes, false, `${method} ${path}: the socket is kept`);
        asked += 1;
        if (reply.closes) dropped += 1;
        if (allowed.includes(method)) {
          // Where {name} stands for itself there may be nothing of that name.
          t.notOk([...(path.includes('{') ? [] : [404]), 405, 500, 503].includes(reply.status), `${method} ${path}: ${reply.status}`);
          continue;
        }
        t.equal(reply.status, 405, `${method} ${path}`);
        t.same(one(reply, 'allow')?.split(', ').sort(), [...allowed, 'OPTIONS'].sort());
        if (method === 'HEAD') t.equal(reply.body, '', 'no content after HEAD');
        else t.equal(reply.problem['code'], 'METHOD_NOT_ALLOWED');
      }
    }
  }
  figure(t, 'T58', { did: `every path with ${METHODS.length} methods: ${asked} requests`, figure: `${dropped} sockets dropped, 405 with Allow wherever there is no row`, ok: dropped === 0 });
});

t.test('an unknown path is 404 with any method and any body', async (t) => {
  const { app } = await startApp(t);
  const paths = ['/', '/api', '/api/auth', '/api/auth/login/', '/API/auth/login', '//api/auth/login', '/api/auth/%6cogin', '/api/auth/../auth/login', '/metrics', '/pool', '/%00', `/${'a'.repeat(8000)}`, '/api/auth/login%0d%0aX-Injected:%201', '/__proto__', '/constructor'];
  for (const path of paths) {
    const reply = await exchange(app.port, request(`GET ${path}`));
    checkReply(t, reply, path.slice(0, 40));
    t.match(reply, { status: 404, problem: { code: 'NOT_FOUND' } }, path.slice(0, 40));
  }
  for (const method of METHODS.filter((name) => name !== 'HEAD')) {
    const reply = await exchange(app.port, request(`${method} /nowhere?a=1`, ['Content-Type: text/html'], '<p>\xff'));
    t.match(reply, { status: 404, problem: { code: 'NOT_FOUND' }, closes: false }, method);
  }
});

t.test('a type that is not JSON is 415, a missing body 400, and a body beyond 16 KiB 413', async (t) => {
  const { app } = await startApp(t);
  const post = (headers: string[], body?: string) => exchange(app.port, request('POST /api/auth/login', headers, body));
  const body = JSON.stringify({ email: 'a@example.com', password: 'p' });
  const padded = (size: number): string => body.padEnd(size, ' ');
  t.match(await post(['Content-Type: text/plain'], body), { status: 415, problem: { code: 'UNSUPPORTED_MEDIA_TYPE' } });
  t.match(await post([], body), { status: 415 });
  t.match(await post([JSON_TYPE, 'Content-Type: text/plain'], body), { status: 400 }, 'two types');
  t.match(await post([]), { status: 400, problem: { code: 'INVALID_REQUEST' } });
  t.match(await post([JSON_TYPE], ''), { status: 400, problem: { code: 'INVALID_REQUEST' } });
  t.match(await post([JSON_TYPE], padded(16 * 1024)), { status: 401 }, 'exactly 16 KiB');
  const large = await post([JSON_TYPE], padded(16 * 1024 + 1));
  t.match(large, { status: 413, closes: true, problem: { code: 'PAYLOAD_TOO_LARGE' } });
  t.same(large.headers.get('connection'), ['close']);
  checkReply(t, large, '413');
  t.match(await post(['Content-Type: text/plain'], padded(20_000)), { status: 413 });
  t.match(await exchange(app.port, request('GET /nowhere', [], padded(20_000))), { status: 413 });
});

t.test('a header that carries a credential is refused when it is sent twice', async (t) => {
  const { app, account, client } = await startApp(t);
  const { email, password } = await account();
  const token = (await client().login(email, password)).body['accessToken'] as string;
  const cookies = client();
  await cookies.login(email, password, 'cookie');
  const jar = cookies.cookieHeader();
  const xsrf = `X-XSRF-Token: ${cookies.jar.get('XSRF-TOKEN')}`;
  const at = `idp_at=${cookies.jar.get('idp_at')}`;
  const bearer = `Authorization: Bearer ${token}`;
  const profile = (...headers: string[]) => exchange(app.port, request('GET /api/auth/profile', headers));
  const post = (path: string, headers: string[], body?: string) => exchange(app.port, request(`POST ${path}`, headers, body));

  t.match(await profile(bearer), { status: 200 });
  t.match(await profile(`Cookie: ${jar}`), { status: 200 });
  t.match(await profile(bearer, bearer), { status: 401, problem: { code: 'UNAUTHENTICATED' } });
  t.match(await profile(bearer, 'Authorization: Basic eDp5'), { status: 401 });
  t.match(await profile(bearer, `Cookie: ${at}; ${at}`), { status: 401 }, 'two cookies, though the bearer would do');
  t.match(await profile(`Cookie: ${at}; ${at}`), { status: 401 });
  t.match(await profile(`Cookie: ${at}`, `Cookie: ${at}`), { status: 401 }, 'in two headers');
  t.match(await profile(`Cookie: idp_at=x; ${at}`), { status: 401 });
  t.match(await post('/api/auth/logout', [`Cookie: ${jar}`, xsrf, xsrf]), { status: 403, problem: { code: 'CSRF_FAILED' } });
  t.match(await post('/api/auth/logout', [`Cookie: ${jar}; XSRF-TOKEN=x`, xsrf]), { status: 403 });
  const refresh = (cookie: string) => post('/api/auth/refresh', ['X-Token-Delivery: cookie', `Cookie: ${cookie}`, xsrf]);
  t.match(await refresh(`${jar}; idp_rt=x`), { status: 401 });
  t.match(await refresh(`idp_rt=x; ${jar}`), { status: 401 });
  t.match(await refresh(`${jar}; idp_jti=x`), { status: 401 });
  t.match(await post('/api/auth/login', [JSON_TYPE, 'X-Token-Delivery: json', 'X-Token-Delivery: cookie'], JSON.stringify({ email, password })), { status: 400 });
  t.match(await post('/api/auth/login', [JSON_TYPE, 'X-Token-Delivery: both'], JSON.stringify({ email, password })), { status: 400, problem: { code: 'INVALID_REQUEST' } });
  t.match(await profile(bearer, 'X-Token-Delivery: both'), { status: 200 }, 'elsewhere the header is ignored');
  t.match(await profile(`Cookie: ${jar}`), { status: 200 }, 'nothing of it touched the session');
});

t.test('401 names the scheme, 429 and 503 the seconds to wait in header and body alike', async (t) => {
  const { app } = await startApp(t, { LIMIT_LOGIN_IP: '1/60' });
  t.equal(one(await exchange(app.port, request('GET /api/auth/profile')), 'www-authenticate'), 'Bearer');
  const login = () => exchange(app.port, request('POST /api/auth/login', [JSON_TYPE], '{"email":"a@example.com","password":"p"}'));
  await login();
  const limited = await login();
  t.match(limited, { status: 429, problem: { code: 'RATE_LIMITED', retryAfter: Number } });
  t.equal(one(limited, 'retry-after'), String(limited.problem['retryAfter']));
});

t.test('metrics name methods and paths of the route table only', async (t) => {
  const { app } = await startApp(t);
  for (const line of ['GET /health/live', 'GET /secret/path', 'FOO /api/auth/login', 'GET /api/auth/login?token=x', 'POST /api/auth/refresh']) await exchange(app.port, request(line, ['Transfer-Encoding: chunked']), '0\r\n\r\n');
  await exchange(app.port, request('POST /api/auth/login', [], 'x'.repeat(20_000)));
  const { body } = await exchange(app.opsPort, request('GET /metrics'));
  const labels = new Set([...body.matchAll(/^idp_http_request_seconds_count\{(.*)\}/gm)].map((match) => match[1]));
  t.same([...labels].sort(), [
    'method="GET",path="/health/live",status="200"',
    'method="POST",path="/api/auth/login",status="413"',
    'method="POST",path="/api/auth/refresh",status="400"',
    'method="other",path="other",status="404"',
    'method="other",path="other",status="405"',
  ]);
});
