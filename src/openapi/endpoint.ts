import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { answer } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import type { Document } from './document.js';

/** The document as it is served: made once. */
export interface ApiDocument {
  body: Buffer;
  etag: string;
}

export function renderDocument(document: Document): ApiDocument {
  const body = Buffer.from(JSON.stringify(document));
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
}

/** GET /openapi.json: this API, as the declarations of its endpoints say it. */
export const openapi = endpoint({
  tag: 'Keys',
  summary: 'This document',
  description: 'Caches may keep it and ask with If-None-Match whether it still holds.',
  replies: {
    200: { body: Type.Object({ openapi: Type.String({ examples: ['3.1.0'] }) }, { title: 'OpenAPI', additionalProperties: true }), description: 'OpenAPI 3.1.', headers: { ETag: 'Names this version.' } },
    304: { body: null, description: 'The version that the client has still holds.', headers: { ETag: 'Names this version.' } },
  },
  errors: [],
  handle: ({ apiDocument: { body, etag } }: { apiDocument: ApiDocument }, call) => {
    const headers = { 'Cache-Control': 'public, no-cache', 'ETag': etag };
    const isKept = call.headers.get('if-none-match')?.includes(etag) ?? false;
    return Promise.resolve(isKept ? answer(304, { headers }) : answer(200, { headers: { ...headers, 'Content-Type': 'application/json; charset=utf-8' }, body }));
  },
});
