import t from 'tap';
import { Type } from '@sinclair/typebox';
import { json } from '../../../src/http/call.js';
import { endpoint, ID, row } from '../../../src/http/endpoint.js';
import type { Incoming } from '../../../src/http/exchange.js';
import { createPaths } from '../../../src/http/paths.js';
import { createPipeline, impliedErrors } from '../../../src/http/pipeline.js';
import { createLog } from '../../../src/log.js';

t.test('a parameter takes one whole segment as it was sent, and a fixed path wins over it', (t) => {
  const find = createPaths(new Map(['/a', '/a/{id}', '/a/all', '/a/{id}/b', '/x.y/{one}/{two}'].map((path) => [path, path])));
  const expected: Record<string, unknown> = {
    '/a': ['/a', {}],
    '/a/all': ['/a/all', {}],
    '/a/1': ['/a/{id}', { id: '1' }],
    '/a/%2Fb%00': ['/a/{id}', { id: '%2Fb%00' }],
    '/a/{id}': ['/a/{id}', { id: '{id}' }],
    '/a/1/b': ['/a/{id}/b', { id: '1' }],
    '/x.y/1/2': ['/x.y/{one}/{two}', { one: '1', two: '2' }],
  };
  for (const [path, [target, params]] of Object.entries(expected) as [string, [string, object]][]) t.same(find(path), { target, params }, path);
  for (const path of ['/', '/a/', '/a//b', '/a/1/', '/a/1/b/', '/a/1/c', '/A/1', '/a/1\n/b\n', '/xzy/1/2', '__proto__']) t.equal(find(path), null, path);
  t.end();
});

const echoed = endpoint({
  tag: 'Operations',
  summary: 'Say the parameters',
  params: { id: ID, kind: Type.String({ pattern: '^[a-z]+$' }) },
  replies: { 200: Type.Object({ id: Type.String(), kind: Type.String() }) },
  errors: [],
  handle: (_, call) => Promise.resolve(json(200, { id: call.params.id, kind: call.params.kind })),
});
const observed = new Set<string>();
const build = (path: string) =>
  createPipeline([row('get', path, 'anyone', 'safe', null, '-', echoed)], {}, {
    config: { trustedProxies: [], corsOrigins: [], trustTlsProxy: false, tlsCertFile: null, cookieDomainXsrf: null },
    keyring: null as never,
    log: createLog('silent'),
    guards: { authenticate: () => Promise.resolve(null), limit: () => Promise.resolve(), refreshSession: () => null },
    observe: (_seconds, _method, seen) => observed.add(seen),
    strict: true,
  });
const incoming = (method: string, path: string): Incoming => ({ requestId: 'r', receivedAt: performance.now(), method, path, query: '', headers: { get: () => undefined, twice: () => false }, peer: '127.0.0.1', body: Buffer.alloc(0), gone: () => new AbortController().signal });

t.test('a call has the parameters of its path; values that do not fit are 404, other methods 405', async (t) => {
  const pipeline = build('/things/{id}/{kind}');
  const id = '0199c0de-0000-7000-8000-000000000001';
  const ask = async (path: string, method = 'GET') => {
    const { status, body, headers } = await pipeline.handle(incoming(method, path));
    return { status, body: body as string, allow: headers?.['Allow'] };
  };
  t.match(await ask(`/things/${id}/red`), { status: 200, body: JSON.stringify({ id, kind: 'red' }) });
  for (const bad of [`/things/${id}/RED`, `/things/${id}/red%20`, `/things/${id.toUpperCase()}/red`, `/things/x${id}/red`, `/things/${id}0/red`, `/things/${id}%00/red`, "/things/' OR 1=1/red", '/things//red']) {
    t.match(await ask(bad), { status: 404, body: /"NOT_FOUND"/ }, bad);
  }
  t.match(await ask(`/things/${id}/red`, 'DELETE'), { status: 405, allow: 'GET, OPTIONS' });
  t.same([...observed].sort(), ['/things/{id}/{kind}', 'other'], 'metrics know paths of rows alone');
  t.ok(impliedErrors(row('get', '/things/{id}/{kind}', 'anyone', 'safe', null, '-', echoed)).includes('NOT_FOUND'));
});

t.test('a path whose parameters its endpoint does not declare stops the start', (t) => {
  for (const path of ['/things/{id}', '/things', '/things/{id}/{kind}/{more}', '/things/{id}/{sort}']) t.throws(() => build(path), /has the parameters/, path);
  t.end();
});
