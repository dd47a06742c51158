import { ApiError } from '../errors.js';
import type { Place } from '../places.js';
import type { Call, Delivery, Headers, Principal } from './call.js';
import type { ClientAddress } from './client.js';
import { parseCookies } from './cookies.js';
import type { Row } from './endpoint.js';
import type { Incoming } from './exchange.js';

/** Where a call seems to come from; asked only when somebody wants to know. */
export interface Places {
  place?(call: Pick<Call, 'ip' | 'headers' | 'viaProxy'>): Place | null;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A call while it is made out. A class, since a literal with getters would make closures for each request. */
export class OpenCall implements Writable<Call> {
  readonly requestId: string;
  readonly receivedAt: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly cookies: Call['cookies'];
  readonly tossed: Call['tossed'];
  readonly ip: string;
  readonly network: string;
  readonly viaProxy: boolean;
  readonly userAgent: string;
  readonly query: Record<string, string>;
  readonly delivery: Delivery;
  body: unknown = undefined;
  principal: Principal | null = null;
  private found: Place | null | undefined = undefined;

  /** @throws ApiError INVALID_REQUEST */
  constructor(
    private readonly incoming: Incoming,
    { endpoint, delivers }: Pick<Row<never>, 'endpoint' | 'delivers'>,
    readonly params: Call['params'],
    { ip, network, viaProxy }: ClientAddress,
    private readonly guards: Places,
  ) {
    const { requestId, receivedAt, method, path, headers } = incoming;
    this.query = endpoint.query ? readQuery(incoming.query) : {};
    this.delivery = delivers ? readDelivery(headers) : 'json';
    this.requestId = requestId;
    this.receivedAt = receivedAt;
    this.method = method;
    this.path = path;
    this.headers = headers;
    ({ cookies: this.cookies, tossed: this.tossed } = parseCookies(headers.get('cookie')));
    this.ip = ip;
    this.network = network;
    this.viaProxy = viaProxy;
    this.userAgent = headers.get('user-agent') ?? '';
  }

  get place(): Place | null {
    if (this.found === undefined) this.found = this.guards.place?.(this) ?? null;
    return this.found;
  }

  get gone(): AbortSignal {
    return this.incoming.gone();
  }
}

function readDelivery(headers: Headers): Delivery {
  const value = headers.get('x-token-delivery') ?? 'json';
  if (value !== 'json' && value !== 'cookie') {
    throw new ApiError('INVALID_REQUEST', { errors: [{ path: '/headers/x-token-delivery', message: 'must be json or cookie' }] });
  }
  return value;
}

function readQuery(query: string): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (Object.hasOwn(read, name)) throw new ApiError('INVALID_REQUEST', { errors: [{ path: `/query/${name}`, message: 'must be given once' }] });
    if (name !== '__proto__') read[name] = value;
  }
  return read;
}
