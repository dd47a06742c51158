import t from 'tap';
import { createDocument } from '../../../src/openapi/document.js';
import { PUBLIC_ROUTES } from '../../../src/routes.js';
import { startApp } from '../../support/app.js';
import { exchange, request } from '../../support/raw.js';

const { app, client } = await startApp(t);

t.test('GET /openapi.json is the document of the public table, for anyone, and names its version', async (t) => {
  const { status, headers, body, text } = await client().request('GET', '/openapi.json');
  t.equal(status, 200);
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8');
  t.equal(headers.get('cache-control'), 'public, no-cache');
  t.match(headers.get('etag'), /^"[\w-]{43}"$/);
  t.same(body, JSON.parse(JSON.stringify(createDocument(PUBLIC_ROUTES))));
  t.equal((await client().request('GET', '/openapi.json')).text, text);
});

t.test('a cache that has the version is told so in a reply without a body, and the socket goes on', async (t) => {
  const etag = (await client().request('GET', '/openapi.json')).headers.get('etag')!;
  for (const held of [etag, `W/${etag}`, `"other", ${etag}`]) {
    const reply = await exchange(app.port, request('GET /openapi.json', [`If-None-Match: ${held}`]));
    t.match(reply, { status: 304, body: '', closes: false }, held);
    t.equal(reply.headers.get('etag')?.[0], etag);
    t.notOk(reply.headers.has('content-length'), 'a length would be that of the document');
  }
  t.equal((await client().request('GET', '/openapi.json', { headers: { 'if-none-match': '"other"' } })).status, 200);
});
