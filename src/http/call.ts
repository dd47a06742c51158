import type { Place } from '../places.js';

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
  /** What the endpoint asked to be read with the session. */
  read?: unknown;
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
  /** Whether a trusted proxy passed it on, so that what the proxy says of the client is believed. */
  readonly viaProxy: boolean;
  /** Where that address seems to be, as far as it can be told. */
  readonly place: Place | null;
  readonly userAgent: string;
  readonly delivery: Delivery;
  readonly body: Body;
  readonly principal: Principal | null;
  /** Aborts when the client leaves. */
  readonly gone: AbortSignal;
}

/** A call by an authenticated account. */
export type UserCall<Body = unknown, Query = Record<string, string>, Params = Record<string, string>> = Call<Body, Query, Params> & { readonly principal: Principal };

/** What goes with the body of a reply. `cookies` are complete Set-Cookie values. */
export interface Accompanying {
  headers?: Record<string, string>;
  cookies?: string[];
}

declare const says: unique symbol;

/** What a handler answers. `Said` is what its body says, for the compiler alone: see `replies` of an endpoint. */
export interface Reply<Status extends number = number, Said = unknown> extends Accompanying {
  status: Status;
  body?: string | Buffer;
  /** A body that is produced piece by piece; the pieces are written as the client takes them. */
  stream?: AsyncIterable<string | Buffer>;
  readonly [says]?: Said;
}

/** A value as JSON carries it: its dates are texts. */
export type Json<T> = T extends Date ? string : T extends readonly (infer E)[] ? Json<E>[] : T extends object ? { -readonly [K in keyof T]: Json<T[K]> } : T;

const JSON_HEADERS = Object.freeze({ 'Content-Type': 'application/json; charset=utf-8' });

export const json = <const Status extends number, const T>(status: Status, body: T, { headers, ...extra }: Accompanying = {}): Reply<Status, Json<T>> => ({
  status,
  body: JSON.stringify(body),
  headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS,
  ...extra,
});

/** A text, a stream or headers alone: what they say is the handler's word. */
export const answer = <const Status extends number>(status: Status, rest: Omit<Reply, 'status' | typeof says>): Reply<Status, never> => ({ status, ...rest });

export const empty = (extra: Accompanying = {}): Reply<204, null> => ({ status: 204, ...extra });
