/** What the load program is told and what it tells. Times in ms. */

/** Where the load program takes accounts from: it never comes back to one before all others had their turn. */
export interface Accounts {
  count: number;
  first: number;
  password: string;
}

export const emailOf = (n: number): string => `bench-${n}@example.com`;

export type Traffic =
  /** GET / of the bare route. */
  | 'empty'
  /** Each request another account. */
  | 'login'
  /** Each connection rotates a session of its own, always with the newest token. */
  | 'refresh'
  /** Each connection asks for an account of its own. */
  | 'profile';

export interface LoadJob {
  traffic: Traffic;
  /** http://host:port */
  base: string;
  /** Requests in flight, each sent when the one before was answered; or requests per second whatever the answers do. */
  pace: { connections: number } | { perSecond: number };
  warmMs: number;
  measureMs: number;
  /** The process whose CPU time is taken. */
  watch: number;
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
  /** Share of all cores that was idle, 0 to 1. */
  idle: number;
  /** How late a paced request was sent, which is the load program's fault; 0 when not paced. */
  lateP99: number;
}
