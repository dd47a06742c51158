import t from 'tap';
import { listen } from '../../../src/http/server.js';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { converse, exchange, request } from '../../support/raw.js';
import { freePort } from '../../support/stores.js';

const cookies = (bytes: number): string => `Cookie: ${'analytics=0123456789abcdef; '.repeat(Math.ceil(bytes / 28))}`.slice(0, bytes);

t.test('12 KiB of cookies pass; 20 KiB of headers, a long URL or a hundred headers are a clean 4xx', async (t) => {
  const { app, account, client } = await startApp(t);
  const { email, password } = await account();
  const token = (await client().login(email, password)).body['accessToken'] as string;
  const profile = (...headers: string[]) => exchange(app.port, request('GET /api/auth/profile', [`Authorization: Bearer ${token}`, ...headers]));
  const usual = await profile(cookies(12 * 1024));
  t.match(usual, { status: 200, problem: { email } });
  const large = [await profile(cookies(20 * 1024)), await profile(...Array.from({ length: 120 }, (_, i) => `X-${i}: y`))];
  for (const reply of large) t.match(reply, { status: /^4(00|31)$/, closes: true });
  figure(t, 'T47', { did: '12 KiB of cookies; 20 KiB; 120 headers', figure: [usual, ...large].map(({ status }) => status).join(', '), ok: usual.status === 200 && large.every(({ status }) => status >= 400 && status < 500) });
  t.match(await exchange(app.port, request(`GET /${'a'.repeat(12 * 1024)}`)), { status: 404 });
  t.match(await exchange(app.port, request(`GET /${'a'.repeat(20 * 1024)}`)), { status: /^4\d\d$/, closes: true });
});

t.test('bytes that are no HTTP/1.1 get a clean refusal, and the service goes on', async (t) => {
  const { app } = await startApp(t);
  const junk = ['GET /health/live HTTP/1.0\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'GET /health/live\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n', 'GET /health/live HTTP/1.1\n\n', 'GET health/live HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /health/live HTTP/1.1\r\n\r\n', 'GET /health/live HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n'];
  for (const bytes of junk) {
    const { status, closes, body } = await exchange(app.port, bytes);
    t.ok([400, 505].includes(status), `${JSON.stringify(bytes)}: ${status}`);
    t.ok(closes);
    t.notMatch(body, /live/);
  }
  t.match(await exchange(app.port, request('GET /health/live')), { status: 200, body: '{"status":"live"}' });
});

t.test('a socket is kept for the next request unless the client says close', async (t) => {
  const { app } = await startApp(t);
  const talk = await converse(app.port);
  const lines = ['GET /health/live', 'POST /api/auth/login', 'GET /nowhere', 'HEAD /health/live', 'OPTIONS /api/auth/login', 'DELETE /api/auth/profile', 'GET /api/auth/profile'];
  for (const line of lines) {
    talk.send(request(line));
    await talk.reply(line.startsWith('HEAD') ? 'head' : undefined);
  }
  t.equal(talk.rest(), '');
  talk.send(request('GET /health/live', ['Connection: close']));
  t.equal((await talk.reply()).status, 200);
  await talk.closed;
});

t.test('a client that waits to be asked for its body is asked', async (t) => {
  const { app } = await startApp(t);
  const body = '{"email":"a@example.com","password":"p"}';
  const talk = await converse(app.port);
  talk.send(request('POST /api/auth/login', ['Content-Type: application/json', 'Expect: 100-continue', `Content-Length: ${body.length}`]));
  t.equal((await talk.reply()).status, 100);
  talk.send(body);
  t.equal((await talk.reply()).status, 401);
  talk.socket.destroy();
});

t.test('HSTS is sent when a proxy in front speaks TLS, and not without TLS', async (t) => {
  const [plain, proxied] = [await startApp(t), await startApp(t, { TRUST_TLS_PROXY: '1' })];
  for (const line of ['GET /health/live', 'GET /nowhere', 'PUT /api/auth/login', 'POST /api/auth/login']) {
    t.notOk((await exchange(plain.app.port, request(line))).headers.has('strict-transport-security'), line);
    t.same((await exchange(proxied.app.port, request(line))).headers.get('strict-transport-security'), ['max-age=31536000; includeSubDomains'], line);
  }
});

t.test('a port that is taken is an error that names it', async (t) => {
  const port = await freePort();
  const options = { host: '127.0.0.1', port, tls: null, handle: () => Promise.resolve({ status: 204 }), refuse: () => ({ status: 400, body: '' }) };
  const first = await listen(options);
  t.teardown(() => first.close(0));
  await t.rejects(listen(options), new RegExp(`cannot listen on 127.0.0.1:${port}`));
});
