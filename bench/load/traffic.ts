import { homeOf } from './addresses.js';
import { emailOf, type LoadJob, type LoadTarget, type Traffic } from './job.js';
import { createSessions, refreshRequest, spread, type OpenSession } from './sessions.js';
import { AGENT, JSON_HEADERS, type Request } from './wire.js';

/** Where the requests of one connection come from. */
export type Sender =
  /** The same requests in turn, whatever the replies. */
  | { kind: 'fixed'; requests: Request[] }
  /** Each request is another, whatever the replies. */
  | { kind: 'made'; next(): Request }
  /** Each request follows from the reply before, of which it is told the text when it was a 200. */
  | { kind: 'chain'; next(): Request; took(reply: string): void };

/** Refreshes per second for which sessions are kept ready: more than any measurement has done yet. */
const MOST_REFRESHES = 40_000;
/** Sign-ins under way while senders are prepared. */
const AT_ONCE = 8;
/** Tokens and cookies are used again for so long; access tokens live for 900 s, cached cookies for 300 s. */
const KEPT_MS = { 'profile': 600_000, 'peer-session': 200_000 };

/** Prepares as many senders as a job has connections; `seconds` is how long it lasts. */
export function createTraffic(program: number, programs: number): (job: LoadJob, senders: number, seconds: number) => Promise<Sender[]> {
  const sessions = createSessions(program);
  const kept = new Map<string, { until: number; requests: Request[] }>();
  let logins = 0;

  /** The account of the next login; programs start far apart, and none comes back to one before all others had their turn. */
  const nextAccount = ({ accounts }: LoadTarget): number => spread(logins++ + Math.floor((program * accounts) / programs), accounts);

  function login({ target, address }: LoadJob): Request {
    const account = nextAccount(target);
    const headers = { ...JSON_HEADERS, 'x-forwarded-for': address ?? homeOf(account) };
    return { method: 'POST', path: '/api/auth/login', headers, body: JSON.stringify({ email: emailOf(account), password: target.password }) };
  }

  function peerLogin({ target }: LoadJob): Request {
    const headers = { ...JSON_HEADERS, origin: target.base };
    return { method: 'POST', path: '/api/auth/sign-in/email', headers, body: JSON.stringify({ email: emailOf(nextAccount(target)), password: target.password }) };
  }

  async function refreshChains({ target, pace }: LoadJob, senders: number, seconds: number): Promise<Sender[]> {
    const { perSession } = target.sessions!;
    const perSecond = 'perSecond' in pace ? pace.perSecond * 2 : MOST_REFRESHES;
    const each = Math.max(1, Math.ceil((perSecond * seconds) / perSession / senders));
    const opened = await sessions.open(target, each * senders, perSession);
    return Array.from({ length: senders }, (_, n) => refreshChain(opened.slice(n * each, (n + 1) * each), perSession));
  }

  async function readers(kind: 'profile' | 'peer-session', { target, sessions: count }: LoadJob): Promise<Request[]> {
    const key = `${kind} ${count} ${target.base}`;
    const known = kept.get(key);
    if (known && performance.now() < known.until) return known.requests;
    const requests = kind === 'profile' ? (await sessions.accessTokens(target, count)).map(profileRequest) : await peerSessions(target, count, () => peerLogin({ target } as LoadJob));
    kept.set(key, { until: performance.now() + KEPT_MS[kind], requests });
    return requests;
  }

  const prepare: Record<Traffic, (job: LoadJob, senders: number, seconds: number) => Sender[] | Promise<Sender[]>> = {
    'empty': (_job, senders) => fixed([EMPTY], senders),
    'login': (job, senders) => made(() => login(job), senders),
    'peer-login': (job, senders) => made(() => peerLogin(job), senders),
    'refresh': refreshChains,
    'profile': async (job, senders) => fixed(await readers('profile', job), senders),
    'peer-session': async (job, senders) => fixed(await readers('peer-session', job), senders),
  };
  return async (job, senders, seconds) => prepare[job.traffic](job, senders, seconds);
}

const made = (next: () => Request, senders: number): Sender[] => Array.from({ length: senders }, () => ({ kind: 'made', next }));

/** Deals the requests out. */
const fixed = (requests: Request[], senders: number): Sender[] =>
  Array.from({ length: senders }, (_, n) => ({ kind: 'fixed', requests: requests.filter((_one, at) => at % senders === n % requests.length) }));

const EMPTY: Request = { method: 'GET', path: '/', headers: AGENT };

const profileRequest = (token: string): Request => ({ method: 'GET', path: '/api/auth/profile', headers: { ...AGENT, authorization: `Bearer ${token}` } });

/** Rotates its sessions one after the other, each as often as its limit allows; with none left, refusals show it. */
function refreshChain(opened: OpenSession[], perSession: number): Sender {
  let [at, used, token] = [0, 0, opened[0]!.refreshToken];
  return {
    kind: 'chain',
    next() {
      if (used === perSession && at + 1 < opened.length) [at, used, token] = [at + 1, 0, opened[at + 1]!.refreshToken];
      used += 1;
      return refreshRequest(token, opened[at]!.address);
    },
    took(reply) {
      token = /"refreshToken":"([^"]+)"/.exec(reply)?.[1] ?? token;
    },
  };
}

/** Signs in with better-auth; its cookies are what get-session is asked with. */
async function peerSessions({ base }: LoadTarget, count: number, next: () => Request): Promise<Request[]> {
  const requests: Request[] = [];
  const signIn = async (): Promise<void> => {
    while (requests.length < count) {
      const place = requests.push({ method: 'GET', path: '/api/auth/get-session', headers: AGENT }) - 1;
      const { method, path, headers, body } = next();
      const reply = await fetch(base + path, { method, headers, body: body! });
      if (reply.status !== 200) throw new Error(`a sign-in of the peer answered ${reply.status}: ${await reply.text()}`);
      await reply.text();
      requests[place]!.headers = { ...AGENT, cookie: reply.headers.getSetCookie().map((line) => line.split(';')[0]!).join('; ') };
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, signIn));
  return requests;
}

/** How a reply is counted: its status, with the code of an error. */
export function kindOf(status: number, body: string): string {
  if (status === 200) return '200';
  const code = /"code":"(\w+)"/.exec(body)?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}
