import t from 'tap';
import { startApp } from '../../support/app.js';
import { createClient } from '../../support/client.js';

const { app, client } = await startApp(t);
const ops = createClient(`http://127.0.0.1:${app.opsPort}`);

const PARTS: Record<string, [string, RegExp]> = {
  '/docs': ['text/html', /<title>Portcullis API<\/title>/],
  '/docs/start.js': ['text/javascript', /SwaggerUIBundle\(\{\s+url: '\/openapi.json'/],
  '/docs/style.css': ['text/css', /\.swagger-ui/],
  '/docs/favicon.svg': ['image/svg+xml', /^<svg /],
  '/docs/swagger-ui.css': ['text/css', /\.swagger-ui/],
  '/docs/swagger-ui-bundle.js': ['text/javascript', /SwaggerUIBundle/],
};

t.test('the ops listener has a page of the API; everything that it loads is its own, and kept by version', async (t) => {
  for (const [path, [media, text]] of Object.entries(PARTS)) {
    const reply = await ops.request('GET', path);
    t.match(reply, { status: 200, text }, path);
    t.equal(reply.headers.get('content-type'), `${media}; charset=utf-8`);
    t.equal(reply.headers.get('cache-control'), 'public, no-cache');
    t.match(await ops.request('GET', path, { headers: { 'if-none-match': reply.headers.get('etag')! } }), { status: 304, text: '' });
  }
  const page = (await ops.request('GET', '/docs')).text;
  const loaded = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
  t.ok(loaded.length >= 6);
  for (const path of loaded) t.equal((await ops.request('GET', path)).status, 200, path);
});

t.test('its policy lets nothing in from elsewhere and runs no script that stands in the page', async (t) => {
  const { headers, text } = await ops.request('GET', '/docs');
  const policy = headers.get('content-security-policy')!;
  for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) t.ok(policy.split('; ').includes(rule), rule);
  t.notMatch(text, /<script(?! src=)|\son\w+=|style=/);
  t.notMatch(policy, /https?:|\*|unsafe-eval/);
});

t.test('it reads the same document as everybody, and the public listener has no page', async (t) => {
  t.equal((await ops.request('GET', '/openapi.json')).text, (await client().request('GET', '/openapi.json')).text);
  for (const path of Object.keys(PARTS)) t.equal((await client().request('GET', path)).status, 404, path);
});
