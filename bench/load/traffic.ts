import { emailOf, type Accounts, type Traffic } from './job.js';

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** One line of requests: what to send first, and what after a reply. */
export interface Sender {
  first: Request;
  /** The next body, given the last reply (status 0: none was waited for), or null to send the same again. */
  next(status: number, body: string): string | null;
}

const AGENT = { 'user-agent': 'portcullis-bench' };
const JSON_HEADERS = { ...AGENT, 'content-type': 'application/json' };
/** Logins under way while senders are prepared: few enough that none is refused. */
const AT_ONCE = 8;

/** Access tokens are used again for so long; they live for 900 s. */
const KEPT_MS = 300_000;

/** Prepares senders for one measurement; those that need a session log in first. */
export function createTraffic(accounts: Accounts): (traffic: Traffic, base: string, senders: number) => Promise<Sender[]> {
  let taken = accounts.first;
  let profiles: { at: number; senders: Sender[] } = { at: -Infinity, senders: [] };
  const credentials = (): string => JSON.stringify({ email: emailOf(taken++ % accounts.count), password: accounts.password });
  const make = { empty, login: () => login(credentials), refresh: (base: string) => refresh(base, credentials()), profile: (base: string) => profile(base, credentials()) };

  return async (traffic, base, senders) => {
    // Signing in beside a flood of logins takes long, and one profile reader is as good as another.
    if (traffic === 'profile' && profiles.senders.length === senders && performance.now() - profiles.at < KEPT_MS) return profiles.senders;
    const made: Sender[] = [];
    for (let from = 0; from < senders; from += AT_ONCE) {
      const some = Array.from({ length: Math.min(AT_ONCE, senders - from) }, () => make[traffic](base));
      made.push(...(await Promise.all(some)));
    }
    if (traffic === 'profile') profiles = { at: performance.now(), senders: made };
    return made;
  };
}

const empty = (): Promise<Sender> => Promise.resolve({ first: { method: 'GET', path: '/', headers: AGENT }, next: () => null });

const login = (credentials: () => string): Promise<Sender> =>
  Promise.resolve({ first: { method: 'POST', path: '/api/auth/login', headers: JSON_HEADERS, body: credentials() }, next: credentials });

async function refresh(base: string, credentials: string): Promise<Sender> {
  const { refreshToken } = await signIn(base, credentials);
  const body = (token: string): string => JSON.stringify({ refreshToken: token });
  return {
    first: { method: 'POST', path: '/api/auth/refresh', headers: JSON_HEADERS, body: body(refreshToken) },
    next: (status, reply) => (status === 200 ? body((JSON.parse(reply) as Tokens).refreshToken) : null),
  };
}

async function profile(base: string, credentials: string): Promise<Sender> {
  const { accessToken } = await signIn(base, credentials);
  return { first: { method: 'GET', path: '/api/auth/profile', headers: { ...AGENT, authorization: `Bearer ${accessToken}` } }, next: () => null };
}

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

async function signIn(base: string, body: string): Promise<Tokens> {
  const reply = await fetch(`${base}/api/auth/login`, { method: 'POST', headers: JSON_HEADERS, body });
  if (reply.status !== 200) throw new Error(`a login answered ${reply.status}: ${await reply.text()}`);
  return (await reply.json()) as Tokens;
}

/** How a reply is counted: its status, with the code of an error. */
export function kindOf(status: number, body: string): string {
  if (status === 200) return '200';
  const code = /"code":"(\w+)"/.exec(body)?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}
