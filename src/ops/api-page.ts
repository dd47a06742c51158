import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Type } from '@sinclair/typebox';
import { answer } from '../http/call.js';
import { endpoint, row, type Row } from '../http/endpoint.js';
import { FAVICON, PAGE, START, STYLE } from './api-page-text.js';

const require = createRequire(import.meta.url);
const packaged = (file: string) => (): Buffer => readFileSync(require.resolve(`swagger-ui-dist/${file}`));
const own = (text: string) => (): Buffer => Buffer.from(text);

/** What the page is made of, by path. Nothing comes from another host. */
const PARTS = {
  '/docs': { media: 'text/html', read: own(PAGE), what: 'The page that shows this API' },
  '/docs/start.js': { media: 'text/javascript', read: own(START), what: 'The script that starts the viewer' },
  '/docs/style.css': { media: 'text/css', read: own(STYLE), what: 'How the page differs from the viewer’s own looks' },
  '/docs/favicon.svg': { media: 'image/svg+xml', read: own(FAVICON), what: 'The icon of the page' },
  '/docs/swagger-ui.css': { media: 'text/css', read: packaged('swagger-ui.css'), what: 'The looks of the viewer' },
  '/docs/swagger-ui-bundle.js': { media: 'text/javascript', read: packaged('swagger-ui-bundle.js'), what: 'The viewer (swagger-ui-dist)' },
} as const;

type Path = keyof typeof PARTS;

/** Reads parts of the page, each once. */
export type ApiPage = (path: Path) => { body: Buffer; etag: string };

export function createApiPage(): ApiPage {
  const kept = new Map<Path, { body: Buffer; etag: string }>();
  return (path) => {
    const known = kept.get(path);
    if (known) return known;
    const body = PARTS[path].read();
    const part = { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
    kept.set(path, part);
    return part;
  };
}

/** The viewer puts styles on its elements and has small pictures in its style sheet; it needs nothing else. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const KEPT = { ETag: 'Names this version.' };

const part = (path: Path) =>
  endpoint({
    tag: 'Operations',
    summary: PARTS[path].what,
    replies: {
      200: { body: Type.String(), media: PARTS[path].media, description: 'The file.', headers: KEPT },
      304: { body: null, description: 'The version that the browser has still holds.', headers: KEPT },
    },
    errors: [],
    handle: ({ apiPage }: { apiPage: ApiPage }, call) => {
      const { body, etag } = apiPage(path);
      const headers = { 'Cache-Control': 'public, no-cache', 'ETag': etag, 'Content-Security-Policy': POLICY };
      const isKept = call.headers.get('if-none-match')?.includes(etag) ?? false;
      return Promise.resolve(isKept ? answer(304, { headers }) : answer(200, { headers: { ...headers, 'Content-Type': `${PARTS[path].media}; charset=utf-8` }, body }));
    },
  });

/** The page and what it loads. */
export const API_PAGE_ROUTES: Row<{ apiPage: ApiPage }>[] = (Object.keys(PARTS) as Path[]).map((path) => row('get', path, 'anyone', 'safe', null, '-', part(path)));
