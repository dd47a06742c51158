import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Hashing } from '../pools/hashing.js';

const FAST = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** The histogram measures whole intervals of a timer; what exceeds the interval is the delay. */
const LOOP_RESOLUTION_MS = 50;

/** What is worked on in batches: passwords by a thread; reads of accounts, sessions, profiles, and writes, by a statement or transaction. */
export type BatchKind = 'password' | 'account' | 'opening' | 'session' | 'profile' | 'refresh' | 'rotation';

/** Everything that the service counts. Labels are words from closed lists, so that their number stays bounded. */
export interface Metrics {
  readonly registry: Registry;
  readonly http: Histogram<'method' | 'path' | 'status'>;
  readonly logins: Counter<'outcome'>;
  readonly refreshes: Counter<'outcome'>;
  readonly hashWait: Histogram;
  readonly hashRun: Histogram;
  readonly hashShed: Counter<'reason'>;
  readonly batches: Histogram<'what'>;
  readonly lua: Histogram<'script'>;
  readonly heldReplies: Gauge;
  readonly events: Counter<'outcome'>;
  readonly notifications: Counter<'channel' | 'outcome'>;
  readonly purged: Counter;
  close(): void;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'idp_', eventLoopMonitoringPrecision: LOOP_RESOLUTION_MS });

  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  new Gauge({
    name: 'idp_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape, by quantile.',
    labelNames: ['quantile'],
    registers,
    collect() {
      for (const quantile of [50, 99, 100]) this.set({ quantile: String(quantile / 100) }, Math.max(0, loop.percentile(quantile) / 1e9 - LOOP_RESOLUTION_MS / 1000));
      loop.reset();
    },
  });

  return {
    registry,
    http: new Histogram({ name: 'idp_http_request_seconds', help: 'Time from the last header to the reply.', labelNames: ['method', 'path', 'status'], buckets: FAST, registers }),
    logins: new Counter({ name: 'idp_logins_total', help: 'Logins and second-factor checks by outcome.', labelNames: ['outcome'], registers }),
    refreshes: new Counter({ name: 'idp_refreshes_total', help: 'Refreshes by outcome.', labelNames: ['outcome'], registers }),
    hashWait: new Histogram({ name: 'idp_hash_wait_seconds', help: 'Time a password waited for a hashing thread.', buckets: FAST, registers }),
    hashRun: new Histogram({ name: 'idp_hash_run_seconds', help: 'Time a hashing thread took for a password.', buckets: FAST, registers }),
    hashShed: new Counter({ name: 'idp_hash_shed_total', help: 'Passwords not checked, by reason: full (no room in the queue), late (HASH_QUEUE_MS was over), evicted (gave way to a less busy source), gone (the client had left).', labelNames: ['reason'], registers }),
    batches: new Histogram({ name: 'idp_batch_size', help: 'Items worked on together: passwords by one thread, reads and writes in one statement or transaction.', labelNames: ['what'], buckets: [1, 2, 4, 8, 16, 32, 64, 128], registers }),
    lua: new Histogram({ name: 'idp_lua_seconds', help: 'Round trip of a Redis script.', labelNames: ['script'], buckets: FAST, registers }),
    heldReplies: new Gauge({ name: 'idp_held_replies', help: 'Failed logins whose reply is being held.', registers }),
    events: new Counter({ name: 'idp_events_total', help: 'Identity events by outcome: published, failed.', labelNames: ['outcome'], registers }),
    notifications: new Counter({ name: 'idp_notifications_total', help: 'Messages by channel and outcome: sent, retried, failed.', labelNames: ['channel', 'outcome'], registers }),
    purged: new Counter({ name: 'idp_accounts_purged_total', help: 'Accounts purged by the retention task.', registers }),
    close: () => loop.disable(),
  };
}

/**
 * Observes by label values, which are few: prom-client looks a series up by a text that it builds each time, and that
 * costs more than the observation.
 */
export function observer<L extends string>(histogram: Histogram<L>): (seconds: number, ...values: (string | number)[]) => void {
  const known = new Map<string, { observe(seconds: number): void }>();
  return (seconds, ...values) => {
    const key = values.join(' ');
    let series = known.get(key);
    if (!series) known.set(key, (series = histogram.labels(...values.map(String))));
    series.observe(seconds);
  };
}

/** Shows the hashing pool at each scrape. */
export function watchHashing({ registry }: Metrics, hashing: Pick<Hashing, 'state' | 'times'>): void {
  const registers = [registry];
  new Gauge({
    name: 'idp_hash_pool',
    help: 'The hashing pool now: threads set, threads alive, threads ending their last jobs, batches running, passwords waiting.',
    labelNames: ['what'],
    registers,
    collect() {
      for (const [what, value] of Object.entries<number>({ ...hashing.state() })) if (what !== 'meanRunMs') this.set({ what }, value);
    },
  });
  new Counter({
    name: 'idp_hash_busy_seconds_total',
    help: 'Time that hashing threads were busy, all together; its rate by the number of threads is their utilisation.',
    registers,
    collect() {
      this.reset();
      this.inc(hashing.times().busy);
    },
  });
  let before = hashing.times();
  new Gauge({
    name: 'idp_hash_utilisation',
    help: 'Share of their time that the hashing threads were busy since the last scrape, 0 to 1.',
    registers,
    collect() {
      const now = hashing.times();
      const there = now.threads - before.threads;
      // Threads that end their last jobs work beside those that are counted.
      this.set(there > 0 ? Math.min(1, (now.busy - before.busy) / there) : 0);
      before = now;
    },
  });
}
