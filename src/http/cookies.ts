import type { Call } from './call.js';

/** The four cookies of a session, as data. */
export const COOKIES = {
  access: { name: 'idp_at', attributes: 'Path=/api; HttpOnly; Secure; SameSite=Strict' },
  refresh: { name: 'idp_rt', attributes: 'Path=/api/auth; HttpOnly; Secure; SameSite=Strict' },
  jti: { name: 'idp_jti', attributes: 'Path=/api/auth; HttpOnly; Secure; SameSite=Strict' },
  xsrf: { name: 'XSRF-TOKEN', attributes: 'Path=/; Secure; SameSite=Strict' },
} as const;

export type CookieKind = keyof typeof COOKIES;

/** Set-Cookie value (RFC 6265 §4.1); `maxAge` in seconds. Values are base64url and dots, which need no quoting. */
export function setCookie(kind: CookieKind, value: string, maxAge: number, domain: string | null = null): string {
  const { name, attributes } = COOKIES[kind];
  const scope = kind === 'xsrf' && domain !== null ? `; Domain=${domain}` : '';
  return `${name}=${value}; Max-Age=${maxAge}; ${attributes}${scope}`;
}

/** The four Set-Cookie values that end a session in a browser. */
export const clearCookies = (domain: string | null): string[] => (Object.keys(COOKIES) as CookieKind[]).map((kind) => setCookie(kind, '', 0, domain));

/** The same, when the client has any of the four: below /auth a browser sends XSRF-TOKEN alone. */
export function endCookies({ cookieDomainXsrf }: { cookieDomainXsrf: string | null }, call: Pick<Call, 'cookies'>): { cookies?: string[] } {
  const ours = Object.values(COOKIES).some(({ name }) => call.cookies.has(name));
  return ours ? { cookies: clearCookies(cookieDomainXsrf) } : {};
}

/** What an endpoint whose reply does so declares of its headers. */
export const CLEARING = { 'Set-Cookie': 'Clears the four cookies, when the client sent any of them.' };

/**
 * Reads a Cookie header (RFC 6265 §5.4). A name that stands twice is not picked from: it goes to `tossed`.
 */
export function parseCookies(header: string | undefined): { cookies: Map<string, string>; tossed: Set<string> } {
  const cookies = new Map<string, string>();
  const tossed = new Set<string>();
  for (const part of header?.split(';') ?? []) {
    const equals = part.indexOf('=');
    if (equals < 0) continue;
    const name = part.slice(0, equals).trim();
    if (cookies.has(name)) tossed.add(name);
    else cookies.set(name, part.slice(equals + 1).trim());
  }
  return { cookies, tossed };
}
