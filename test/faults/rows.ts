/** What somebody does to the service, or what breaks around it, and what must come of it. */
export interface Row {
  /** What is done or breaks. */
  threat: string;
  /** What the service must do. */
  must: string;
  /** What the figure of a run is held against. */
  bound: string;
  /** What of the bound no figure shows yet. */
  lacks?: string;
  /** Why there is no figure at all. */
  unmeasured?: string;
}

/** Every fault that was thought of, by its number. The list is closed: a row leaves it for a better one only. */
export const ROWS = {
  // Guessing and enumeration
  T01: { threat: 'guesses at one account, one after the other', must: 'lock after 5, for 15, 30, 60 min; only a success resets', bound: '≤ 30 verified guesses per account in 24 h' },
  T02: { threat: 'guesses at once on several nodes', must: 'reserve each guess before it is hashed', bound: 'verified guesses − threshold = 0; no right password accepted after the lock' },
  T03: { threat: 'a burst of right logins of one account', must: 'let them wait their turn', bound: '100 of 100 succeed, 100 sessions, no lock' },
  T04: { threat: 'a lock that holds on one way in only', must: 'keep one state for password, second factor, provider and proofs', bound: '0 tokens while locked; a reset by mail proves the owner and lifts the lock by design, but gives no token and skips no second factor' },
  T05: { threat: 'locking somebody out on purpose', must: 'leave sessions and refresh alone, and tell the owner once for each lock', bound: 'refresh 200 while locked; 1 message for a lock, ≤ 3 a day' },
  T06: { threat: 'telling accounts by status, headers or body', must: 'answer all alike', bound: '0 bytes of difference' },
  T07: { threat: 'telling accounts by the time of a login, a sign-up or a request for a reset', must: 'do the same work for unknown addresses', bound: 'AUC 0.45–0.55 (locked addresses in the short run 0.37–0.63, as their sample is small), medians of refusals within 2 ms' },
  T08: { threat: 'telling accounts by the time of restore-request', must: 'answer before the address is looked up', bound: 'AUC 0.45–0.55 (0.40–0.60 in the short run)' },
  T09: { threat: 'inventing client addresses', must: 'believe trusted proxies alone, count IPv6 by /64', bound: '0 requests beyond the limit' },
  T10: { threat: 'an address in a PROXY preamble', must: 'ignore it', bound: '0 sessions from the forged address' },
  T11: { threat: 'the edges of rate limits', must: 'slide the window', bound: 'never more than the limit in any window' },
  T12: { threat: 'pinning replies that are held', must: 'hold no thread or connection, and a bounded number', bound: 'held +0 to +150 ms of the delay; ≤ 16 KiB for each of 5,000, good logins beside them as quick as before' },
  T13: { threat: 'passwords that are alike in part', must: 'compare exact bytes', bound: '0 accepted for each other' },
  // Refresh and sessions
  T14: { threat: 'one refresh token, many callers', must: 'rotate once', bound: '1 successor in each round, session alive' },
  T15: { threat: 'replay of a replaced refresh token', must: 'end the session outside of the overlap', bound: 'both kinds 401, their sessions revoked' },
  T16: { threat: 'the newest token of a session that a replay ended', must: 'refuse it', bound: '0 accepted' },
  T17: { threat: 'many rotations within a second', must: 'count generations, not seconds', bound: '0 replaced tokens accepted' },
  T18: { threat: 'a restart that forgets', must: 'keep nothing of it in memory', bound: '0 replaced or revoked tokens accepted' },
  T19: { threat: 'refresh against the end of its session', must: 'let one wait for the other', bound: '0 tokens that work after the reply' },
  T20: { threat: 'a reply that is lost', must: 'refuse the direct predecessor for 2 s without ending the session', bound: '0 sessions lost within the overlap, ≤ 1 successor' },
  T21: { threat: 'an access token after its session ended', must: 'ask for the state of the session', bound: '0 accepted on any node' },
  T22: { threat: 'session fixation', must: 'make every value new', bound: '4 of 4 cookies are new' },
  T23: { threat: 'tokens read from the stores', must: 'store hashes', bound: '0 found' },
  T24: { threat: 'turning a cookie into a token in a body', must: 'take the refresh token of JSON mode from the body alone', bound: '0 tokens in bodies' },
  T25: { threat: 'cookie tossing', must: 'refuse two values of one name', bound: '0 accepted' },
  T26: { threat: 'clocks that differ or jump', must: 'go by the clock of the database', bound: 'off by less than 60 ms with the clock of the machine 1 h ahead; 0 good tokens refused and 0 ended ones accepted by nodes that are ±1 h off' },
  // One-time codes and the life of an account
  T27: { threat: 'guessing a one-time code at once', must: 'count before checking', bound: 'exactly 5 checked; then the right one is refused' },
  T28: { threat: 'guessing over addresses and new codes', must: 'count by account', bound: '≤ 5 checked before the lock, ≤ 50 a day, ≤ 10 mails a day' },
  T29: { threat: 'one code used many times at once', must: 'use it up in the transaction of the change', bound: '1 success, 1 event' },
  T30: { threat: 'a code used for something else', must: 'bind it to account, purpose and newest issue', bound: '0 of the classes accepted' },
  T31: { threat: 'the counter of a code is lost', must: 'lose the code with it', bound: 'refused, until a new one is asked for' },
  T32: { threat: 'a lock is lost with Redis', must: 'write it through to MySQL', bound: 'still locked' },
  T33: { threat: 'somebody objects to a deletion, fails or hangs', must: 'not delete, and say why', bound: '0 deleted, 0 events, session alive' },
  T34: { threat: 'kill -9 amid deletions', must: 'do all of it in one transaction', bound: '0 lost, 0 half done' },
  T35: { threat: 'kill -9 between publishing and noting it', must: 'publish at least once, under one id', bound: '0 lost, 0 second ids, 0 out of order' },
  T36: { threat: 'restore against purge', must: 'let one win', bound: '0 accounts with both' },
  T37: { threat: 'purge on several nodes, one killed', must: 'purge each account once', bound: 'as many event ids and audit entries as accounts, 0 orphans' },
  T38: { threat: 'nights with a change of the clock, and nights that were missed', must: 'run once a night, and catch up', bound: 'no night left out; none purged before its time' },
  T39: { threat: 'a purge that nobody asked for', must: 'be off by default', bound: '0 purged' },
  // HTTP, parsing, injection
  T40: { threat: 'bodies without measure', must: 'stop reading at 16 KiB', bound: '≤ 32 MiB more memory over 200 sockets, 413' },
  T41: { threat: 'malformed and deep JSON', must: 'refuse it cheaply', bound: '0 × 500, ≤ 5 ms for each' },
  T42: { threat: 'bytes that are not UTF-8', must: 'refuse, never replace', bound: '0 accepted' },
  T43: { threat: 'names that reach a prototype', must: 'refuse them at any depth', bound: '0 accepted' },
  T44: { threat: 'addresses that look alike', must: 'fold ASCII case only, and write to the stored address', bound: '0 other accounts matched, 0 mails' },
  T45: { threat: 'addresses in keys of Redis', must: 'use a keyed hash', bound: '0 addresses, every key in the one form that has a hash tag' },
  T46: { threat: 'requests whose end is ambiguous, headers sent twice', must: 'refuse them without effect', bound: '0 second requests served, 0 side effects' },
  T47: { threat: 'large headers', must: 'take 12 KiB of cookies, refuse 20 KiB cleanly', bound: '200, and a clean 4xx' },
  T48: { threat: 'line breaks in header values', must: 'let none through', bound: '0 headers more' },
  T49: { threat: 'slow clients', must: 'close them', bound: 'all closed within 15 s, good logins not delayed' },
  T50: { threat: 'clients that vanish at any moment', must: 'end nothing and keep nothing', bound: '0 exits, the same threads, nothing held, memory within 5 % (50 % in the short run)' },
  T51: { threat: 'a flood for the hashing threads', must: 'bound the queue and serve sources in turn', bound: 'refused within 50 ms, 0 threads lost', lacks: 'the flood is one inside a process; over HTTP, beside another address, the bench measures it (flood, overload)' },
  T52: { threat: 'threads that die or cannot start', must: 'do the job on another, and fill up again', bound: 'full size within 2 s, 0 jobs of others lost, poisoned hashes ≤ 1 s' },
  T53: { threat: 'CSRF', must: 'ask for the XSRF value of the session, and the own site', bound: '0 classes change anything' },
  T54: { threat: 'forged access tokens', must: 'pin algorithm, key, type and claims', bound: '0 accepted, ≤ 1 ms each (median)' },
  T55: { threat: 'formulas in CSV', must: 'defuse cells, quote by RFC 4180', bound: '0 cells that run, all values come back' },
  T56: { threat: 'templates in names', must: 'insert them as data', bound: 'as written, 1 recipient, 0 headers more' },
  T57: { threat: 'SQL and commands of Redis in any field', must: 'treat it as data', bound: '0 × 500, none slow' },
  T58: { threat: 'unknown paths and methods', must: 'answer 404 or 405 with Allow', bound: '0 dropped sockets, no banner' },
  T59: { threat: 'secrets in logs and stores', must: 'write none', bound: '0 found' },
  // Infrastructure
  T60: { threat: 'Redis forgets its scripts', must: 'send them again', bound: '0 errors seen by clients' },
  T61: { threat: 'failover of Redis', must: 'treat a replica as away, never let anybody in uncounted', bound: '503 only, back within 2 × the timeout of a node + 2 s (5 s of one server), guesses gained ≤ the threshold', lacks: 'Sentinel is not spoken: REDIS_URL names one server or a cluster' },
  T62: { threat: 'Redis full or evicting', must: 'refuse logins, warn at the start', bound: '503, never let in; warned' },
  T63: { threat: 'nobody subscribes', must: 'keep events in outbox and stream', bound: 'all on the stream, once each by id' },
  T64: { threat: 'MySQL away, hanging, cut, killed, read-only, full or deadlocking', must: 'answer 503, never 401, and come back', bound: 'back within 5 s, 0 × 500, 0 double effects' },
  T65: { threat: 'SIGTERM under load', must: 'answer what was accepted, then end', bound: '0 requests without a reply, exit 0 within 10 s' },
  T66: { threat: 'work that holds the event loop', must: 'stream and cap it', bound: 'p99 of the loop delay ≤ 20 ms' },
  T67: { threat: 'long mixed load with one fault after the other', must: 'keep going', bound: '0 exits, 0 × 500, the rules of T14, T29, T34 and T37 kept; the slope of memory is told', lacks: 'two hours with a fault every minute were wished for; this run is short, and npm run soak is as long as one likes (20 minutes, a fault every 20 s)' },
} as const satisfies Record<`T${number}`, Row>;

export type RowId = keyof typeof ROWS;
