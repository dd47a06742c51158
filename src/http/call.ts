import type { ErrorCode } from '../errors.js';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** How tokens travel: in the JSON body, or in httpOnly cookies only. */
export type Delivery = 'json' | 'cookie';

/** Request headers by lower-case name. `twice` has the names that were sent more than once. */
export interface Headers {
  get(name: string): string | undefined;
  twice(name: string): boolean;
}

/** Who made the call, once the pipeline has authenticated it. */
export interface Principal {
  userId: string;
  sessionId: string;
  /** What carried the access token. */
  by: 'bearer' | 'cookie';
}

/** One request as a plain value. Nothing below `http` sees a socket. */
export interface Call<Body = unknown, Query = Record<string, string>, Params = Record<string, string>> {
  readonly requestId: string;
  /** performance.now() when the headers had arrived. */
  readonly receivedAt: number;
  readonly method: string;
  readonly path: string;
  /** What stands in the path where the row's path has `{name}`. */
  readonly params: Params;
  readonly query: Query;
  readonly headers: Headers;
  /** Cookie values by name; a name sent twice with any values is in `tossed`. */
  readonly cookies: ReadonlyMap<string, string>;
  readonly tossed: ReadonlySet<string>;
  /** The client's address behind trusted proxies, and what of it is counted (IPv6: its /64). */
  readonly ip: string;
  readonly network: string;
  readonly userAgent: string;
  readonly delivery: Delivery;
  readonly body: Body;
  readonly principal: Principal | null;
  /** Aborts when the client leaves. */
  readonly gone: AbortSignal;
}

/** A call by an authenticated account. */
export type UserCall<Body = unknown, Query = Record<string, string>, Params = Record<string, string>> = Call<Body, Query, Params> & { readonly principal: Principal };

/** What a handler answers. `cookies` are complete Set-Cookie values. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  cookies?: string[];
  body?: string | Buffer;
  /** A body that is produced piece by piece; the pieces are written as the client takes them. */
  stream?: AsyncIterable<string | Buffer>;
}

export const json = (status: number, body: unknown, extra: Omit<Reply, 'status' | 'body'> = {}): Reply => ({
  status,
  body: JSON.stringify(body),
  ...extra,
  headers: { 'Content-Type': 'application/json; charset=utf-8', ...extra.headers },
});

export const empty = (extra: Omit<Reply, 'status' | 'body'> = {}): Reply => ({ status: 204, ...extra });

/** Error codes that a handler may throw beside those that its row implies. */
export type Declared = readonly ErrorCode[];
