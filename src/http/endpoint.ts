import { Kind, Type, type Static, type TSchema, type TString } from '@sinclair/typebox';
import type { ErrorCode } from '../errors.js';
import type { Call, Method, Reply, UserCall } from './call.js';
import type { Tag } from './tags.js';

/** One success reply of an endpoint: the JSON that it carries, null for none, or more about it. */
export type Shape = TSchema | null | Described;

export interface Described {
  body: TSchema | null;
  description: string;
  /** Headers of its own, by name, and what each says. */
  headers?: Readonly<Record<string, string>>;
  /** What the body is when it is not JSON; `body` says what the text must look like. */
  media?: string;
}

/** Success replies by status; several bodies of one status are a Type.Union. */
export type Replies = Readonly<Record<number, Shape>>;

/** What a shape's body says: what `json` was given, null for `empty`. Texts and streams are taken as they are. */
type Said<S> = S extends TSchema ? Static<S> : S extends { media: string } ? unknown : S extends { body: infer B } ? (B extends TSchema ? Static<B> : null) : null;

/** The replies that a handler may give: one of those declared. */
export type Answered<R> = { [Status in keyof R & number]: Reply<Status, Said<R[Status]>> }[keyof R & number];

/** What the document says of an endpoint in words. */
export interface Words {
  tag: Tag;
  /** One line without a full stop. */
  summary: string;
  /** What the summary, the schemas and the errors leave open. */
  description?: string;
}

/** What is read of the caller while the session is checked: nothing else, or the profile in the same statement. */
export type Reads = 'session' | 'profile';

/** What an endpoint takes, what it answers, how it may fail and what it does. */
export interface Endpoint<Needs> extends Words {
  body: TSchema | null;
  query: TSchema | null;
  /** Parameters of the path, by name; a value that does not fit answers NOT_FOUND. */
  params: Record<string, TString>;
  /** Whether the cookies are the whole request in cookie mode: then no body is read. */
  bareInCookieMode: boolean;
  reads: Reads;
  replies: Replies;
  /** Codes that `before` and `handle` may throw; the pipeline adds those that the row's columns imply. */
  errors: readonly ErrorCode[];
  /** Refuses a call whatever its body says, before that is read. */
  before: ((needs: Needs, call: Call) => void) | null;
  handle: (needs: Needs, call: never) => Promise<Reply>;
}

type Value<S, Else> = S extends TSchema ? Static<S> : Else;

/** An id in a path, as the service writes them. */
export const ID = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', examples: ['0198f4a2-7c1e-7b55-9d0e-3f6f0c1d2e4a'] });

interface Declaration<B, Q, P extends string, R> extends Words {
  body?: B;
  query?: Q;
  params?: Record<P, TString>;
  bareInCookieMode?: boolean;
  reads?: Reads;
  replies: R;
  errors: readonly ErrorCode[];
}

type MaybeSchema = TSchema | undefined;

const declared = ({ tag, summary, description, body, query, params, bareInCookieMode, reads, replies, errors }: Declaration<MaybeSchema, MaybeSchema, string, Replies>): Omit<Endpoint<never>, 'before' | 'handle'> => ({
  ...{ tag, summary, replies, errors },
  ...(description === undefined ? {} : { description }),
  body: body ?? null,
  query: query ?? null,
  params: params ?? {},
  bareInCookieMode: bareInCookieMode ?? false,
  reads: reads ?? 'session',
});

/** An endpoint that anyone may call. */
export function endpoint<Needs, const R extends Replies, B extends MaybeSchema = undefined, Q extends MaybeSchema = undefined, P extends string = string>(
  spec: Omit<Declaration<B, Q, P, R>, 'reads'> & { before?: Endpoint<Needs>['before']; handle: (needs: Needs, call: Call<Value<B, undefined>, Value<Q, Record<string, string>>, Record<P, string>>) => Promise<Answered<R>> },
): Endpoint<Needs> {
  return { ...declared(spec), before: spec.before ?? null, handle: spec.handle };
}

/** An endpoint of rows whose caller is a signed-in user. */
export function userEndpoint<Needs, const R extends Replies, B extends MaybeSchema = undefined, Q extends MaybeSchema = undefined, P extends string = string>(
  spec: Omit<Declaration<B, Q, P, R>, 'bareInCookieMode'> & { handle: (needs: Needs, call: UserCall<Value<B, undefined>, Value<Q, Record<string, string>>, Record<P, string>>) => Promise<Answered<R>> },
): Endpoint<Needs> {
  return { ...declared(spec), before: null, handle: spec.handle };
}

/** A shape in full. */
export function described(shape: Shape): Described {
  if (shape === null) return { body: null, description: 'Done; there is nothing to say.' };
  return Kind in shape ? { body: shape, description: shape.description ?? 'Done.' } : shape;
}

/** Who may call: anyone, or the holder of a valid access credential. */
export type Who = 'anyone' | 'user';

/**
 * What proves that a state-changing request comes from the client itself (contract: section CSRF of the README).
 * `cookie`: demanded when a cookie authenticated the call or carries the refresh token.
 * `login`: the body authenticates; only a cookie-mode reply to a foreign origin is refused.
 * `safe`: nothing is changed, or nothing that a browser adds by itself has a say in it.
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
