import { readFileSync } from 'node:fs';
import { ERRORS, type ErrorCode } from '../errors.js';
import { COOKIES } from '../http/cookies.js';
import { described, type Row } from '../http/endpoint.js';
import { impliedErrors } from '../http/pipeline.js';
import { TAGS } from '../http/tags.js';
import { byStatus, isTemporary, Problem, problemExample } from './problems.js';
import { createSchemas, exampleOf, type Schema, type Schemas } from './schemas.js';

type Refs = Record<string, { $ref: string }>;

export interface Media {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, unknown>;
}

/** A reply of one status. */
export interface Response {
  description: string;
  headers: Record<string, { $ref: string } | { required?: boolean; description: string; schema: Schema }>;
  content?: Record<string, Media>;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: Schema;
}

/** One endpoint at one path. */
export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  /** The path where the same endpoint answers first. */
  'x-same-as'?: string;
  security: Record<string, string[]>[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; description?: string; content: Record<string, Media> };
  responses: Record<string, Response | { $ref: string }>;
}

/** An OpenAPI 3.1 document. */
export interface Document {
  openapi: string;
  info: Record<string, unknown>;
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Response>; examples: Record<string, { value: unknown }>; headers: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };

const ABOUT = `Sign-in for people, and the life of their accounts.

**Errors** are \`application/problem+json\` (RFC 9457). Each endpoint lists every \`code\` that it answers with. A path that is not listed here answers 404 \`NOT_FOUND\`, another method of a listed one 405 \`METHOD_NOT_ALLOWED\` with \`Allow\`, and \`OPTIONS\` 204. What is refused before it is known what is meant can get 400 \`INVALID_REQUEST\` or 413 \`PAYLOAD_TOO_LARGE\` anywhere.

**Tokens** travel as the header \`X-Token-Delivery\` says: in the JSON body, or in httpOnly cookies alone.

**Cookies** as credential: a request that changes something repeats the cookie \`XSRF-TOKEN\` in the header \`X-XSRF-Token\`, and must not come from a foreign site.

Unknown members of a request are ignored. Moments are ISO 8601 in UTC. No reply may be stored by caches unless it says otherwise.`;

const HEADERS = {
  RequestId: { required: true, description: 'Names this request; the log of the service has it too.', schema: { type: 'string', format: 'uuid' } },
  RetryAfter: { required: true, description: 'Seconds until another attempt makes sense.', schema: { type: 'integer', minimum: 1 } },
  Authenticate: { required: true, description: 'What kind of credential is asked for.', schema: { type: 'string', const: 'Bearer' } },
  Xsrf: { description: 'cookie mode: the value of the cookie XSRF-TOKEN, for clients that cannot read it.', schema: { type: 'string' } },
  SessionCookies: { description: `cookie mode: ${Object.values(COOKIES).map(({ name }) => name).join(', ')}.`, schema: { type: 'string' } },
  EndedCookies: { description: 'cookie mode: the four cookies are cleared, unless a request under way has just replaced them.', schema: { type: 'string' } },
};

const header = (name: keyof typeof HEADERS): { $ref: string } => ({ $ref: `#/components/headers/${name}` });

const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token.' },
  cookie: { type: 'apiKey', in: 'cookie', name: COOKIES.access.name, description: 'The access token of cookie mode. The browser sends it below /api.' },
  refreshCookie: { type: 'apiKey', in: 'cookie', name: COOKIES.refresh.name, description: 'The refresh token of cookie mode.' },
  xsrf: { type: 'apiKey', in: 'header', name: 'X-XSRF-Token', description: 'Equals the cookie XSRF-TOKEN; beside a cookie that is the credential.' },
};

/** What the operations of one document share. */
interface Parts {
  schemas: Schemas;
  problem: Schema;
  /** Error replies by their only code. */
  failures: Record<string, Response>;
}

/** The document of the rows: what validates and answers is what it says. */
export function createDocument(rows: readonly Row<never>[]): Document {
  const schemas = createSchemas();
  const parts: Parts = { schemas, problem: schemas.of(Problem), failures: {} };
  const paths: Document['paths'] = {};
  for (const row of rows) {
    const first = rows.find(({ method, endpoint }) => method === row.method && endpoint === row.endpoint)!;
    (paths[row.path] ??= {})[row.method] = operation(row, first, parts);
  }
  const used = new Set(rows.flatMap(codesOf));
  const isTagged = (name: string): boolean => rows.some(({ endpoint }) => endpoint.tag === name);
  return {
    openapi: '3.1.0',
    info: { title: 'Portcullis API', version, description: ABOUT },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).flatMap(([name, description]) => (isTagged(name) ? [{ name, description }] : [])),
    paths,
    components: {
      schemas: schemas.named,
      responses: parts.failures,
      examples: Object.fromEntries([...used].sort().map((code) => [code, { summary: ERRORS[code].title, value: problemExample(code) }])),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** Every code that a row may answer with. */
export const codesOf = (row: Row<never>): ErrorCode[] => [...impliedErrors(row), ...row.endpoint.errors];

function operation(row: Row<never>, first: Row<never>, parts: Parts): Operation {
  const { schemas } = parts;
  const { endpoint, path, method } = row;
  const isAlias = first.path !== path;
  const description = [endpoint.description, isAlias ? `The same as ${method.toUpperCase()} ${first.path}.` : undefined].filter(Boolean).join(' ');
  const parameters = parametersOf(row, schemas);
  return {
    operationId: operationId(row),
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(description === '' ? {} : { description }),
    ...(isAlias ? { 'x-same-as': first.path } : {}),
    security: securityOf(row),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(endpoint.body
      ? {
          requestBody: {
            required: !endpoint.bareInCookieMode,
            ...(endpoint.bareInCookieMode ? { description: 'json mode alone; in cookie mode no body is read.' } : {}),
            content: { 'application/json': { schema: schemas.of(endpoint.body), example: exampleOf(endpoint.body) } },
          },
        }
      : {}),
    responses: responsesOf(row, parts),
  };
}

/** postLogin, getAccountExport, deleteSessionsById. */
function operationId({ method, path }: Row<never>): string {
  const words = path.replace(/^\/api\/auth\//, '/').replace(/\{(\w+)\}/g, 'by-$1').match(/\w+/g) ?? [];
  return method + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('');
}

function securityOf({ who, csrf, delivers }: Row<never>): Operation['security'] {
  if (who === 'user') return [{ bearer: [] }, csrf === 'cookie' ? { cookie: [], xsrf: [] } : { cookie: [] }];
  return csrf === 'cookie' && delivers ? [{}, { refreshCookie: [], xsrf: [] }] : [];
}

function parametersOf({ endpoint, delivers }: Row<never>, schemas: Schemas): Parameter[] {
  const query = endpoint.query ? schemas.of(endpoint.query) : {};
  const delivery: Parameter = { name: 'X-Token-Delivery', in: 'header', description: 'How the tokens travel: in the JSON body, or in httpOnly cookies alone.', schema: { type: 'string', enum: ['json', 'cookie'], default: 'json' } };
  return [
    ...Object.entries(endpoint.params).map(([name, schema]): Parameter => ({ name, in: 'path', required: true, ...worded(schemas.of(schema)) })),
    ...Object.entries(query.properties ?? {}).map(([name, schema]): Parameter => ({ name, in: 'query', required: query.required?.includes(name) ?? false, ...worded(schema) })),
    ...(delivers ? [delivery] : []),
  ];
}

const worded = ({ description, ...schema }: Schema): { description?: string; schema: Schema } => ({ ...(typeof description === 'string' ? { description } : {}), schema });

function responsesOf(row: Row<never>, parts: Parts): Operation['responses'] {
  const responses: Operation['responses'] = {};
  for (const [status, shape] of Object.entries(row.endpoint.replies)) {
    const { body, description, headers = {}, media = 'application/json' } = described(shape);
    const own = Object.fromEntries(Object.entries(headers).map(([name, sentence]) => [name, { ...(name === 'Location' ? { required: true } : {}), description: sentence, schema: { type: 'string' } }]));
    const delivered = row.delivers && status === '200' ? { 'Set-Cookie': header('SessionCookies'), 'X-XSRF-Token': header('Xsrf') } : {};
    responses[status] = {
      description,
      headers: { 'X-Request-Id': header('RequestId'), ...delivered, ...own },
      ...(body ? { content: { [media]: { schema: parts.schemas.of(body), ...examplesOf(body) } } } : {}),
    };
  }
  for (const [status, codes] of byStatus(codesOf(row))) {
    const said = responses[status] as Response | undefined;
    const response = failure(status, codes, parts, row);
    if (said) responses[status] = { description: `${said.description}\n\n${response.description}`, headers: said.headers, content: { ...said.content, ...response.content } };
    else responses[status] = shared(response, codes, parts);
  }
  return responses;
}

/** A reply with one code is the same wherever it occurs, unless it clears cookies: it stands in the document once. */
function shared(response: Response, codes: ErrorCode[], { failures }: Parts): Response | { $ref: string } {
  if (codes.length > 1 || 'Set-Cookie' in response.headers) return response;
  failures[codes[0]!] = response;
  return { $ref: `#/components/responses/${codes[0]!}` };
}

function failure(status: number, codes: ErrorCode[], { problem }: Parts, { endpoint }: Row<never>): Response {
  const headers: Refs = {
    'X-Request-Id': header('RequestId'),
    ...(status === 401 ? { 'WWW-Authenticate': header('Authenticate') } : {}),
    ...(status === 401 && endpoint.bareInCookieMode ? { 'Set-Cookie': header('EndedCookies') } : {}),
    ...(isTemporary(status) ? { 'Retry-After': header('RetryAfter') } : {}),
  };
  const schema: Schema = { allOf: [problem, { properties: { status: { const: status }, code: { enum: codes } } }] };
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join('\n\n'),
    headers,
    content: { 'application/problem+json': { schema, examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])) } },
  };
}

/** One example, or one of each body that has a name. */
function examplesOf(body: Schema): Pick<Media, 'example' | 'examples'> {
  const kinds = body.anyOf ?? [];
  const isNamed = kinds.length > 0 && kinds.every(({ title }) => title !== undefined);
  return isNamed ? { examples: Object.fromEntries(kinds.map((kind) => [kind.title!, { value: exampleOf(kind) }])) } : { example: exampleOf(body) };
}
