import t from 'tap';
import { startApp } from '../../support/app.js';
import { exchange, request } from '../../support/raw.js';

const APP = 'https://app.example.com';
const OTHER = 'https://admin.example.com:8443';

t.test('a preflight from an allowed origin is granted, with credentials, for that origin alone', async (t) => {
  const { app } = await startApp(t, { CORS_ORIGINS: `${APP},${OTHER}` });
  for (const origin of [APP, OTHER]) {
    const { status, headers, body } = await exchange(app.port, request('OPTIONS /api/auth/refresh', [`Origin: ${origin}`, 'Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: x-xsrf-token']));
    t.equal(status, 204);
    t.equal(body, '');
    t.notOk(headers.has('content-length'), '204 has no length');
    t.same(headers.get('access-control-allow-origin'), [origin]);
    t.same(headers.get('access-control-allow-credentials'), ['true']);
    t.same(headers.get('access-control-allow-methods'), ['POST, OPTIONS']);
    t.same(headers.get('access-control-allow-headers'), ['Content-Type, Authorization, X-XSRF-Token, X-Token-Delivery']);
    t.same(headers.get('vary'), ['Origin']);
  }
});

t.test('every reply to an allowed origin may be read, refusals too, and exposes three headers', async (t) => {
  const { app } = await startApp(t, { CORS_ORIGINS: APP });
  const replies: [number, string[]][] = [
    [200, [request('GET /health/live', [`Origin: ${APP}`])]],
    [401, [request('GET /api/auth/profile', [`Origin: ${APP}`])]],
    [404, [request('GET /nowhere', [`Origin: ${APP}`])]],
    [405, [request('PUT /api/auth/profile', [`Origin: ${APP}`])]],
    [413, [request('POST /api/auth/login', [`Origin: ${APP}`], 'x'.repeat(20_000))]],
    [415, [request('POST /api/auth/login', [`Origin: ${APP}`], 'x')]],
    [400, [request('POST /api/auth/login', [`Origin: ${APP}`, 'Content-Length: 1'], 'x')]],
  ];
  for (const [expected, bytes] of replies) {
    const { status, headers } = await exchange(app.port, ...bytes);
    t.equal(status, expected);
    t.same(headers.get('access-control-allow-origin'), [APP], `${expected}`);
    t.same(headers.get('access-control-allow-credentials'), ['true'], `${expected}`);
    t.same(headers.get('access-control-expose-headers'), ['X-XSRF-Token, X-Request-Id, Retry-After'], `${expected}`);
    t.same(headers.get('vary'), ['Origin'], `${expected}`);
  }
});

t.test('an origin that is not on the list to the letter gets no grant', async (t) => {
  const { app } = await startApp(t, { CORS_ORIGINS: APP });
  for (const origin of ['https://evil.example', 'http://app.example.com', `${APP}:443`, `${APP}.evil.example`, `${APP}/`, APP.toUpperCase(), 'null', '*', `${APP}%0d%0aX: y`]) {
    for (const method of ['OPTIONS', 'GET']) {
      const { headers } = await exchange(app.port, request(`${method} /health/live`, [`Origin: ${origin}`, 'Access-Control-Request-Method: GET']));
      t.notOk([...headers.keys()].some((name) => name.startsWith('access-control-')), `${method} from ${origin}`);
      t.same(headers.get('vary'), ['Origin'], 'caches must keep the two apart');
    }
  }
  const twice = await exchange(app.port, request('GET /health/live', [`Origin: ${APP}`, `Origin: ${APP}`]));
  t.notOk(twice.headers.has('access-control-allow-origin'), 'two origins');
});

t.test('without a list nobody gets a grant', async (t) => {
  const { app } = await startApp(t);
  const { status, headers } = await exchange(app.port, request('OPTIONS /api/auth/login', [`Origin: ${APP}`, 'Access-Control-Request-Method: POST']));
  t.equal(status, 204);
  t.same(headers.get('allow'), ['POST, OPTIONS']);
  t.notOk([...headers.keys()].some((name) => name.startsWith('access-control-')));
});
