/** What the load program is told and what it tells. Times in ms. */

/** The server that a load goes to. */
export interface LoadTarget {
  /** http://host:port */
  base: string;
  /** Its process, whose CPU time is taken. */
  pid: number;
  /** Accounts that it knows: bench-0@example.com and so on, all with one password. */
  accounts: number;
  password: string;
  /** Where sessions can be opened without a login; null where that is not needed. */
  sessions: SessionStore | null;
}

export interface SessionStore {
  mysqlUrl: string;
  /** SECRET_KEY of the service, in base64. */
  secretKey: string;
  /** Refreshes that the limits allow in their window: per session and per client address. */
  perSession: number;
  perAddress: number;
}

export const emailOf = (account: number): string => `bench-${account}@example.com`;

export type Traffic =
  /** GET / of the bare route. */
  | 'empty'
  /** Each request another account. */
  | 'login'
  /** Each sender rotates sessions of its own, always with the newest token; none is used more often than the limits allow. */
  | 'refresh'
  /** The profiles of `sessions` accounts, over and over. */
  | 'profile'
  /** better-auth: sign-in by e-mail, each request another account. */
  | 'peer-login'
  /** better-auth: get-session with the cookies of `sessions` accounts, over and over. */
  | 'peer-session';

export interface LoadJob {
  traffic: Traffic;
  target: LoadTarget;
  /** Requests in flight, each sent when the one before was answered; or requests per second whatever the answers do. */
  pace: { connections: number } | { perSecond: number };
  warmMs: number;
  measureMs: number;
  /** Sessions that are read in turn. */
  sessions: number;
  /** The one client address of all logins; else each account has an address of its own. */
  address?: string;
  /** The load program goes before all others, so that what it adds to a latency is small. For low rates. */
  precise?: boolean;
}

/** Replies of one kind. */
export interface Tally {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

export interface LoadResult {
  /** By status, for errors with their code: `200`, `503 OVERLOADED`; `none` when no reply came. */
  replies: Record<string, Tally>;
  /** 200s per second of the measured time. */
  perSecond: number;
  /** CPU time of the watched process per reply, in µs; null where the system does not tell. */
  cpuUs: number | null;
  /** Share of all cores that was idle, 0 to 1, and that this load program used. */
  idle: number;
  load: number;
  /** How late a paced request was sent, which is the load program's fault; 0 when not paced. */
  lateP99: number;
}
