import t from 'tap';
import { isBadlyFramed } from '../../../src/http/framing.js';
import type { Headers } from '../../../src/http/call.js';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { converse, exchange, request } from '../../support/raw.js';

const headers = (...lines: [string, string][]): Headers => ({
  get: (name) => lines.filter(([n]) => n === name).map(([, value]) => value).join(', ') || undefined,
  twice: (name) => lines.filter(([n]) => n === name).length > 1,
});

t.test('one length or one chunked coding is good framing, anything else is not', (t) => {
  const good: [string, string][][] = [[], [['content-length', '0']], [['content-length', '17']], [['transfer-encoding', 'Chunked']]];
  const bad: [string, string][][] = [
    [['content-length', '5'], ['content-length', '5']],
    [['content-length', '+5']],
    [['content-length', '5 5']],
    [['transfer-encoding', 'gzip']],
    [['transfer-encoding', 'gzip, chunked']],
    [['transfer-encoding', 'chunked'], ['transfer-encoding', 'chunked']],
    [['transfer-encoding', 'chunked'], ['content-length', '5']],
    [['content-type', 'application/json'], ['content-type', 'text/plain']],
  ];
  for (const lines of good) t.equal(isBadlyFramed(headers(...lines)), false, JSON.stringify(lines));
  for (const lines of bad) t.equal(isBadlyFramed(headers(...lines)), true, JSON.stringify(lines));
  t.end();
});

const JSON_TYPE = 'Content-Type: application/json';
const body = '{"email":"nobody@example.com","password":"guess"}';
const smuggled = request('GET /health/live');

/** Requests whose end two readers could see at different places. */
const AMBIGUOUS: [string, string][] = [
  ['two lengths that differ', request('POST /api/auth/login', [JSON_TYPE, 'Content-Length: 0'], body)],
  ['two lengths that agree', request('POST /api/auth/login', [JSON_TYPE, `Content-Length: ${body.length}`], body)],
  ['a list of lengths', request('POST /api/auth/login', [JSON_TYPE, 'Content-Length: 0, 49']) + body],
  ['a signed length', request('POST /api/auth/login', [JSON_TYPE, 'Content-Length: +49']) + body],
  ['a negative length', request('POST /api/auth/login', [JSON_TYPE, 'Content-Length: -1']) + body],
  ['an empty length', request('POST /api/auth/login', [JSON_TYPE, 'Content-Length: '])],
  ['two lengths where no body is asked for', request('GET /api/auth/profile', ['Content-Length: 0', `Content-Length: ${smuggled.length}`])],
  ['coding and length', request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding: chunked'], body)],
  ['an unknown coding', request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding: gzip'])],
  ['an unknown coding where no body is asked for', request('GET /health/live', ['Transfer-Encoding: identity'])],
  ['a coding twice', `${request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity'])}0\r\n\r\n`],
  ['a blank before the colon', `${request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding : chunked'])}0\r\n\r\n`],
  ['a folded header', request('GET /health/live', ['X-A: b\r\n Transfer-Encoding: chunked'])],
  ['a NUL in a header', request('GET /health/live', ['X-A: b\0c'])],
  ['two hosts', request('GET /health/live', ['Host: other'])],
  ['a chunk size that is none', `${request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding: chunked'])}zz\r\n`],
  ['a chunk size beyond measure', `${request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding: chunked'])}fffffffffffffffff\r\n`],
];

t.test('a badly framed request is refused and has no effect, and nothing behind it is served', async (t) => {
  const { app, client } = await startApp(t);
  let served = 0;
  for (const [name, bytes] of AMBIGUOUS) {
    const alone = await converse(app.port);
    alone.send(bytes);
    const reply = await alone.reply();
    await alone.closed;
    t.equal(reply.status, 400, name);
    if (reply.headers.has('content-length')) t.match(reply.problem, { status: 400, code: 'INVALID_REQUEST' }, `${name}: a problem document`);

    const followed = await converse(app.port);
    followed.send(bytes + smuggled);
    await followed.closed;
    t.match(followed.rest(), /^$|^HTTP\/1.1 400 /, `${name}, followed by a request`);
    t.equal(followed.rest().split('HTTP/1.1').length <= 2, true, `${name}: one reply at most`);
    t.notOk(followed.rest().includes('live'), `${name}: the second request is not served`);
    if (followed.rest().includes('live')) served += 1;
  }
  const effects = (await app.needs.mysql.rows('SELECT id FROM audit_log')).length;
  t.equal(effects, 0, 'no login was tried');
  figure(t, 'T46', { did: `${AMBIGUOUS.length} ambiguous requests, alone and with one behind them`, figure: `${served} second requests served, ${effects} side effects`, ok: served === 0 && effects === 0 });
  t.equal((await client().request('GET', '/health/live')).status, 200, 'the service goes on');
});

t.test('an endpoint without a body acts only once the announced body is whole', async (t) => {
  const { app, account, client } = await startApp(t);
  const { email, password } = await account();
  const token = (await client().login(email, password)).body['accessToken'] as string;
  const talk = await converse(app.port);
  talk.send(`POST /api/auth/logout HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 5\r\n\r\nhel`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal((await client().profile(token)).status, 200, 'not logged out by half a request');
  talk.send('lo');
  t.equal((await talk.reply()).status, 204);
  t.equal((await client().profile(token)).status, 401);
  talk.socket.destroy();
});

t.test('a second request while one is pending never runs', async (t) => {
  const { app, account } = await startApp(t);
  const { email, password } = await account();
  const talk = await converse(app.port);
  talk.send(request('GET /health/ready') + request('POST /api/auth/login', [JSON_TYPE], JSON.stringify({ email, password })));
  await talk.closed;
  await new Promise((resolve) => setTimeout(resolve, 100));
  const sessions = await app.needs.mysql.rows('SELECT id FROM sessions');
  t.equal(sessions.length, 0);
});

t.test('good framing of every kind is understood', async (t) => {
  const { app } = await startApp(t);
  const chunked = request('POST /api/auth/login', [JSON_TYPE, 'Transfer-Encoding: chunked']) + `5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`;
  t.match(await exchange(app.port, chunked), { status: 401, problem: { code: 'INVALID_CREDENTIALS' } });
  t.match(await exchange(app.port, request('GET /health/live', [], 'a body nobody asked for')), { status: 200, closes: false });
  const talk = await converse(app.port);
  const bytes = request('POST /api/auth/login', [JSON_TYPE], body);
  for (const byte of bytes) talk.send(byte);
  t.equal((await talk.reply()).status, 401, 'byte by byte');
  talk.send(request('GET /health/live'));
  t.equal((await talk.reply()).status, 200, 'the socket is kept');
  talk.socket.destroy();
});
