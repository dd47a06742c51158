/** What the load program is told and what it tells. Times in ms. */

/** The service under load, and the accounts it knows: `of(group, n)` for n below `count`, all with one password. */
export interface LoadSetup {
  base: string;
  pid: number;
  /** Processes of private stores. */
  stores: number[];
  password: string;
  count: number;
}

export interface LoadJob {
  /** Logins of these accounts. */
  group: string;
  /** Logins under way, each sent when the one before was answered; or logins per second at random moments, whatever the answers do. */
  pace: { connections: number } | { perSecond: number };
  warmMs: number;
  measureMs: number;
}

/** Where the time of the cores went, in µs for each login. */
export interface CpuSplit {
  /** The hashing threads. */
  hash: number;
  /** The rest of the service. */
  service: number;
  /** The load program. */
  load: number;
  /** MySQL and Redis, when they are private. */
  stores: number;
  /** Everything else on this machine. */
  others: number;
}

export interface LoadResult {
  perSecond: number;
  p50: number;
  p99: number;
  /** Replies that were no tokens, by status and code; `none` when no reply came. */
  failures: Record<string, number>;
  /** Null where the system does not tell, or nothing was done. */
  cpu: CpuSplit | null;
  /** Share of all cores that was idle, 0 to 1. */
  idle: number;
}

export const emailOf = (group: string, n: number): string => `tune-${group}-${n}@example.com`;
