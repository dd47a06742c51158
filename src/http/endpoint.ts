import { Type, type Static, type TSchema, type TString } from '@sinclair/typebox';
import type { ErrorCode } from '../errors.js';
import type { Call, Method, Reply, UserCall } from './call.js';

/** What an endpoint takes, how it may fail and what it does. */
export interface Endpoint<Needs> {
  body: TSchema | null;
  query: TSchema | null;
  /** Parameters of the path, by name; a value that does not fit answers NOT_FOUND. */
  params: Record<string, TString>;
  /** Whether the cookies are the whole request in cookie mode: then no body is read. */
  bareInCookieMode: boolean;
  /** Codes that `handle` may throw; the pipeline adds those that the row's columns imply. */
  errors: readonly ErrorCode[];
  handle: (needs: Needs, call: never) => Promise<Reply>;
}

type Value<S, Else> = S extends TSchema ? Static<S> : Else;

/** An id in a path, as the service writes them. */
export const ID = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' });

/** An endpoint that anyone may call. */
export function endpoint<Needs, B extends TSchema | undefined = undefined, Q extends TSchema | undefined = undefined, P extends string = string>(spec: {
  body?: B;
  query?: Q;
  params?: Record<P, TString>;
  bareInCookieMode?: boolean;
  errors: readonly ErrorCode[];
  handle: (needs: Needs, call: Call<Value<B, undefined>, Value<Q, Record<string, string>>, Record<P, string>>) => Promise<Reply>;
}): Endpoint<Needs> {
  return { body: spec.body ?? null, query: spec.query ?? null, params: spec.params ?? {}, bareInCookieMode: spec.bareInCookieMode ?? false, errors: spec.errors, handle: spec.handle };
}

/** An endpoint of rows whose caller is a signed-in user. */
export function userEndpoint<Needs, B extends TSchema | undefined = undefined, Q extends TSchema | undefined = undefined, P extends string = string>(spec: {
  body?: B;
  query?: Q;
  params?: Record<P, TString>;
  errors: readonly ErrorCode[];
  handle: (needs: Needs, call: UserCall<Value<B, undefined>, Value<Q, Record<string, string>>, Record<P, string>>) => Promise<Reply>;
}): Endpoint<Needs> {
  return { body: spec.body ?? null, query: spec.query ?? null, params: spec.params ?? {}, bareInCookieMode: false, errors: spec.errors, handle: spec.handle };
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
