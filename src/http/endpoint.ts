import type { Static, TSchema } from '@sinclair/typebox';
import type { ErrorCode } from '../errors.js';
import type { Call, Method, Reply, UserCall } from './call.js';

/** What an endpoint takes, how it may fail and what it does. */
export interface Endpoint<Needs> {
  body: TSchema | null;
  query: TSchema | null;
  /** Whether the cookies are the whole request in cookie mode: then no body is read. */
  bareInCookieMode: boolean;
  /** Codes that `handle` may throw; the pipeline adds those that the row's columns imply. */
  errors: readonly ErrorCode[];
  handle: (needs: Needs, call: never) => Promise<Reply>;
}

type Value<S, Else> = S extends TSchema ? Static<S> : Else;

/** An endpoint that anyone may call. */
export function endpoint<Needs, B extends TSchema | undefined = undefined, Q extends TSchema | undefined = undefined>(spec: {
  body?: B;
  query?: Q;
  bareInCookieMode?: boolean;
  errors: readonly ErrorCode[];
  handle: (needs: Needs, call: Call<Value<B, undefined>, Value<Q, Record<string, string>>>) => Promise<Reply>;
}): Endpoint<Needs> {
  return { body: spec.body ?? null, query: spec.query ?? null, bareInCookieMode: spec.bareInCookieMode ?? false, errors: spec.errors, handle: spec.handle };
}

/** An endpoint of rows whose caller is a signed-in user. */
export function userEndpoint<Needs, B extends TSchema | undefined = undefined, Q extends TSchema | undefined = undefined>(spec: {
  body?: B;
  query?: Q;
  errors: readonly ErrorCode[];
  handle: (needs: Needs, call: UserCall<Value<B, undefined>, Value<Q, Record<string, string>>>) => Promise<Reply>;
}): Endpoint<Needs> {
  return { body: spec.body ?? null, query: spec.query ?? null, bareInCookieMode: false, errors: spec.errors, handle: spec.handle };
}

/** Who may call: anyone, or the holder of a valid access credential. */
export type Who = 'anyone' | 'user';

/**
 * What proves that a state-changing request comes from the client itself (contract: section CSRF of the README).
 * `cookie`: demanded when a cookie authenticated the call or carries the refresh token.
 * `login`: the body authenticates; only a cookie-mode reply to a foreign origin is refused.
 * `safe`: nothing is changed.
 */
export type Csrf = 'safe' | 'login' | 'cookie';

/** One line of the route table. */
export interface Row<Needs> {
  method: Method;
  path: string;
  who: Who;
  csrf: Csrf;
  /** Name of a limit that is counted before the handler runs, by user or by client address. */
  limit: string | null;
  /** Whether X-Token-Delivery is honoured. */
  delivers: boolean;
  endpoint: Endpoint<Needs>;
}

export function row<Needs>(method: Method, path: string, who: Who, csrf: Csrf, limit: string | null, delivers: 'tokens' | '-', target: Endpoint<Needs>): Row<Needs> {
  return { method, path, who, csrf, limit, delivers: delivers === 'tokens', endpoint: target };
}
