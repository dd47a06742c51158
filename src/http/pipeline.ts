import { Type } from '@sinclair/typebox';
import type { Config } from '../config/settings.js';
import { ApiError, type ErrorCode } from '../errors.js';
import type { Keyring } from '../keyring.js';
import type { Log } from '../log.js';
import { parseBody } from './body.js';
import type { Call, Principal, Reply } from './call.js';
import { clientAddresses } from './client.js';
import { COOKIES } from './cookies.js';
import { createCors } from './cors.js';
import { demandOwnSite, demandXsrf } from './csrf.js';
import type { Reads, Row } from './endpoint.js';
import { headerBlock, type Answering, type Incoming, type Refusal, type Sent } from './exchange.js';
import { OpenCall, type Places } from './open-call.js';
import { createPaths, paramsOf } from './paths.js';
import { problem } from './problem.js';
import { matcher, validator } from './validate.js';

/** What the pipeline asks of the features, since `http` knows none of them. */
export interface Guards extends Places {
  /** The holder of the call's access credential, with what the endpoint wants to know of it; or null. */
  authenticate(call: Call, reads: Reads): Promise<Principal | null>;
  /** Counts the call against a limit; throws RATE_LIMITED. */
  limit(name: string, call: Call): Promise<void>;
  /** The session that a refresh cookie names, or null; nothing is looked up. */
  refreshSession(call: Call): string | null;
}

export interface PipelineOptions {
  config: Pick<Config, 'trustedProxies' | 'corsOrigins' | 'trustTlsProxy' | 'tlsCertFile' | 'cookieDomainXsrf'>;
  keyring: Keyring;
  log: Log;
  guards: Guards;
  /** Sees every reply; `method` and `path` are the row's or `other`, so that their number stays bounded. */
  observe(seconds: number, method: string, path: string, status: number): void;
  /** Whether an error that an endpoint does not declare becomes INTERNAL, so that no test passes with it. */
  strict?: boolean;
}

interface Bound<Needs> {
  row: Row<Needs>;
  checkBody: ((value: unknown) => void) | null;
  checkQuery: ((value: unknown) => void) | null;
  fitsParams: ((value: unknown) => boolean) | null;
  declared: ReadonlySet<ErrorCode>;
}

/** The steps that every request takes, in this order: route → read → authenticate → csrf → limit → before → validate → handle. */
export function createPipeline<Needs>(rows: Row<Needs>[], needs: Needs, options: PipelineOptions): Answering {
  const { config, log, guards } = options;
  const table = new Map<string, Map<string, Bound<Needs>>>();
  for (const row of rows) {
    checkNames(row);
    const methods = table.get(row.path) ?? new Map<string, Bound<Needs>>();
    methods.set(row.method.toUpperCase(), {
      row,
      checkBody: row.endpoint.body && validator(row.endpoint.body),
      checkQuery: row.endpoint.query && validator(row.endpoint.query),
      fitsParams: limitsParams(row) ? matcher(Type.Object(row.endpoint.params)) : null,
      declared: new Set([...impliedErrors(row), ...row.endpoint.errors]),
    });
    table.set(row.path, methods);
  }
  const find = createPaths(table);
  const addressOf = clientAddresses(config.trustedProxies);
  const secure = config.tlsCertFile !== null || config.trustTlsProxy;

  const always = {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-site',
    ...(secure ? { 'Strict-Transport-Security': 'max-age=31536000; includeSubDomains' } : {}),
  };
  const cors = createCors(config.corsOrigins);
  /** What replies say beside their own headers, by what they grant. */
  const blocks = new Map(cors.grants.map((granted) => [granted, headerBlock({ ...always, ...granted })]));
  const isUsual = (headers: Reply['headers'] = {}): boolean => !Object.keys(headers).some((name) => name in always);

  async function run(incoming: Incoming, bound: Bound<Needs>, params: Call['params']): Promise<Reply> {
    const { row } = bound;
    const call = new OpenCall(incoming, row, params, addressOf(incoming.peer, incoming.headers), guards);
    if (row.who === 'user') {
      call.principal = await guards.authenticate(call, row.endpoint.reads);
      if (!call.principal) throw new ApiError('UNAUTHENTICATED');
    }
    checkCsrf(row, call);
    if (row.limit !== null) await guards.limit(row.limit, call);
    if (bound.fitsParams && !bound.fitsParams(params)) throw new ApiError('NOT_FOUND');
    if (bound.checkQuery) bound.checkQuery(call.query);
    row.endpoint.before?.(needs, call);
    if (bound.checkBody && !(row.endpoint.bareInCookieMode && call.delivery === 'cookie')) {
      call.body = parseBody(incoming.body, call.headers.get('content-type'));
      bound.checkBody(call.body);
    }
    return row.endpoint.handle(needs, call as never);
  }

  function checkCsrf(row: Row<Needs>, call: Call): void {
    if (row.csrf === 'login' && call.delivery === 'cookie') demandOwnSite(call, config.corsOrigins, secure);
    if (row.csrf !== 'cookie') return;
    const byCookie = row.who === 'user' ? call.principal?.by === 'cookie' : call.delivery === 'cookie' && call.cookies.has(COOKIES.refresh.name);
    if (!byCookie) return;
    demandOwnSite(call, config.corsOrigins, secure);
    // Of two refresh cookies neither is picked, not even to tell whose CSRF token it must be: the endpoint refuses both.
    const isTossed = call.tossed.has(COOKIES.refresh.name);
    demandXsrf(options.keyring, call, call.principal?.sessionId ?? (isTossed ? null : guards.refreshSession(call)));
  }

  /** The only place where an error becomes a reply. */
  async function handle(incoming: Incoming): Promise<Sent> {
    const found = find(incoming.path);
    const methods = found?.target;
    const bound = methods?.get(incoming.method);
    let reply: Reply;
    try {
      if (!methods) throw new ApiError('NOT_FOUND');
      if (!bound) reply = incoming.method === 'OPTIONS' ? { status: 204, headers: { Allow: allow(methods) } } : problem(new ApiError('METHOD_NOT_ALLOWED'), incoming.requestId, { Allow: allow(methods) });
      else reply = await run(incoming, bound, found.params);
    } catch (error) {
      reply = failed(incoming, bound, error);
    }
    observe(incoming, bound, reply);
    return finish(incoming, reply, methods);
  }

  function observe(incoming: Incoming, bound: Bound<Needs> | undefined, { status }: Reply): void {
    const seconds = (performance.now() - incoming.receivedAt) / 1000;
    options.observe(seconds, bound ? incoming.method : 'other', bound?.row.path ?? 'other', status);
  }

  function failed(incoming: Incoming, bound: Bound<Needs> | undefined, error: unknown): Reply {
    const row = bound?.row;
    let known = error instanceof ApiError ? error : new ApiError('INTERNAL', {}, { cause: error });
    if (bound && !bound.declared.has(known.code)) {
      log.error({ path: bound.row.path, outcome: known.code }, 'an endpoint answered with an error it does not declare');
      if (options.strict) known = new ApiError('INTERNAL', { detail: `${known.code} is not declared` }, { cause: error });
    }
    if (known.code === 'INTERNAL') log.error({ requestId: incoming.requestId, method: incoming.method, path: row?.path, err: known.cause }, 'request failed');
    else if (known.code === 'UNAVAILABLE') log.warn({ requestId: incoming.requestId, path: row?.path, reason: (known.cause as Error | undefined)?.message }, 'a store is unavailable');
    return problem(known, incoming.requestId);
  }

  function finish(incoming: Incoming, { status, headers, cookies, body, stream }: Reply, methods: Map<string, Bound<Needs>> | undefined): Sent {
    const id = { 'X-Request-Id': incoming.requestId };
    const granted = cors.grantTo(incoming.headers.get('origin'), incoming.method === 'OPTIONS' && methods ? allow(methods) : null);
    const block = isUsual(headers) ? blocks.get(granted) : undefined;
    return { status, headers: block ? { ...id, ...headers } : { ...id, ...always, ...headers, ...granted }, block, cookies, body, stream };
  }

  return {
    handle,
    refuse(incoming, why) {
      const methods = find(incoming.path)?.target;
      const reply = problem(refusal(why), incoming.requestId);
      observe(incoming, methods?.get(incoming.method), reply);
      return finish(incoming, reply, methods);
    },
  };
}

function refusal(why: Refusal): ApiError {
  if (why === 'too-large') return new ApiError('PAYLOAD_TOO_LARGE');
  if (why === 'timeout') return new ApiError('UNAVAILABLE', { retryAfter: 1 });
  return new ApiError('INVALID_REQUEST', { detail: 'the framing of the request is ambiguous' });
}

/** Whether the parameters that a path names are those that its endpoint declares; a mistake stops the start. */
function checkNames({ path, endpoint }: Row<never>): void {
  const named = paramsOf(path).join(', ');
  const declared = Object.keys(endpoint.params).join(', ');
  if (named !== declared) throw new Error(`${path} has the parameters (${named}), its endpoint declares (${declared})`);
}

/** Whether some value of a parameter does not fit: else none is looked at. */
const limitsParams = ({ endpoint }: Row<never>): boolean => Object.values(endpoint.params).some((schema) => ['pattern', 'minLength', 'maxLength'].some((keyword) => keyword in schema));

const allow = (methods: Map<string, unknown>): string => [...methods.keys(), 'OPTIONS'].join(', ');

/** Codes that a row's columns imply, beside those its endpoint declares. */
export function impliedErrors(row: Row<never>): ErrorCode[] {
  const implied: ErrorCode[] = ['INTERNAL', 'UNAVAILABLE', 'PAYLOAD_TOO_LARGE', 'INVALID_REQUEST'];
  if (row.endpoint.body) implied.push('UNSUPPORTED_MEDIA_TYPE');
  if (row.who === 'user') implied.push('UNAUTHENTICATED');
  // Where no cookie can be the credential and none is set, nothing is asked.
  if (row.csrf !== 'safe' && (row.who === 'user' || row.delivers)) implied.push('CSRF_FAILED');
  if (row.limit !== null) implied.push('RATE_LIMITED');
  if (limitsParams(row)) implied.push('NOT_FOUND');
  return implied;
}
