import { fetched } from './witness.js';

/** A reply as a test looks at it. */
export interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
  text: string;
  setCookies: string[];
}

/** The body of a login or refresh in json mode. */
export interface Issued {
  accessToken: string;
  refreshToken: string;
  jti: string;
}

export interface Request {
  body?: unknown;
  headers?: Record<string, string>;
  /** Sent as it is, instead of `body`. */
  raw?: string | Uint8Array;
}

export interface Client {
  request(method: string, path: string, request?: Request): Promise<Answer>;
  login(email: string, password: string, mode?: 'json' | 'cookie', headers?: Record<string, string>): Promise<Answer>;
  refresh(token: unknown, extra?: Record<string, unknown>): Promise<Answer>;
  /** Refresh in cookie mode, with the XSRF value of the jar unless headers say otherwise. */
  refreshByCookie(headers?: Record<string, string>): Promise<Answer>;
  profile(accessToken?: string): Promise<Answer>;
  /** Cookies by name, kept like a browser keeps them (whatever their Path). */
  jar: Map<string, string>;
  /** The Cookie header that the jar makes. */
  cookieHeader(): string;
}

/** A client of the service; `ip` is what a trusted proxy would report. */
export function createClient(base: string, { ip, userAgent = 'portcullis-tests' }: { ip?: string; userAgent?: string } = {}): Client {
  const jar = new Map<string, string>();
  const cookieHeader = (): string => [...jar].map(([name, value]) => `${name}=${value}`).join('; ');

  async function request(method: string, path: string, { body, headers = {}, raw }: Request = {}): Promise<Answer> {
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const { response, text } = await fetched(base + path, {
      method,
      headers: {
        'user-agent': userAgent,
        ...(ip === undefined ? {} : { 'x-forwarded-for': ip }),
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent as string }),
    });
    const setCookies = response.headers.getSetCookie();
    for (const cookie of setCookies) keep(cookie);
    return { status: response.status, headers: response.headers, text, setCookies, body: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {} };
  }

  function keep(cookie: string): void {
    const [pair] = cookie.split(';');
    const equals = pair!.indexOf('=');
    if (/Max-Age=0\b/.test(cookie)) jar.delete(pair!.slice(0, equals));
    else jar.set(pair!.slice(0, equals), pair!.slice(equals + 1));
  }

  return {
    request,
    jar,
    cookieHeader,
    login: (email, password, mode = 'json', headers = {}) => request('POST', '/api/auth/login', { body: { email, password }, headers: { 'x-token-delivery': mode, ...headers } }),
    refresh: (refreshToken, extra = {}) => request('POST', '/api/auth/refresh', { body: { refreshToken, ...extra } }),
    refreshByCookie: (headers = {}) =>
      request('POST', '/api/auth/refresh', { headers: { 'x-token-delivery': 'cookie', 'cookie': cookieHeader(), 'x-xsrf-token': jar.get('XSRF-TOKEN') ?? '', ...headers } }),
    profile: (accessToken) => request('GET', '/api/auth/profile', { headers: accessToken === undefined ? { cookie: cookieHeader() } : { authorization: `Bearer ${accessToken}` } }),
  };
}
