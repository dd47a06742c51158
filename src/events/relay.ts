import { randomUUID } from 'node:crypto';
import type { Deps } from '../deps.js';
import { dropOldEvents, dueEvents, EVENT_BATCH, settlePublished, type StoredEvent } from '../store/outbox.js';
import { KEYS } from '../store/redis.js';
import type { Handlers } from './handlers.js';

/** What a feature sees of the relay. */
export interface Events {
  /** Has committed events published now. Called after the commit; never fails, never waits. */
  wake(): void;
}

export interface Relay extends Events {
  /** Publishes what is due once more, waits for the handlers, and stops. */
  close(): Promise<void>;
}

type Needs = Pick<Deps, 'mysql' | 'scripts' | 'log' | 'config' | 'metrics'>;

/** A round that has published nothing for so long is taken for dead; longer than one statement may take. */
export const LEASE_MS = 1000;
/** Every node looks by itself so often: the node that committed may have died before it could wake its relay. */
const POLL_MS = 1000;
/** How long to wait for a lease that another holds: a holder may end without having looked again. */
export const KNOCK_MS = 25;
const FIRST_RETRY_MS = 50;
const SWEEP_MS = 60_000;
/** How long a round waits for the handlers of its own node before it counts a message as delivered to them. */
const HANDLERS_MS = 300;
/** A node whose handlers are so far behind leaves the relaying to others. */
const MOST_WAITING = 1000;

export const keepMs = ({ eventsKeepDays }: Pick<Deps['config'], 'eventsKeepDays'>): number => Math.floor(eventsKeepDays * 86_400_000);

/**
 * Publishes what transactions left in the outbox: at least once, in order per user, the same text on every repeat.
 *
 * Any node may relay, one at a time: a round takes the lease in Redis, publishes all that is due and gives the lease
 * back. A node that finds it taken leaves word, and the holder looks again before it ends, so no commit waits for a
 * poll. Rows are read only under the lease and published only while it stands, in the step that checks it: a relay
 * that was frozen in between can repeat nothing behind the back of its successor.
 */
export function startRelay(needs: Needs, handlers: Pick<Handlers, 'deliver' | 'waiting'>): Relay {
  let asked = false;
  let closing = false;
  let failures = 0;
  let sweepDue = 0;
  let running: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let delivered: Promise<unknown> = Promise.resolve();

  function run(): void {
    if (running) return;
    clearTimeout(timer);
    running = rounds().then((restMs) => {
      running = null;
      // A wake between the last look and now found the round still running.
      if (!closing) timer = setTimeout(run, asked && failures === 0 ? 0 : restMs);
    });
  }

  /** Runs rounds until nobody asks for more, and gives how long to rest then, in ms. */
  async function rounds(): Promise<number> {
    try {
      let restMs: number;
      do {
        asked = false;
        restMs = await round();
      } while (asked);
      if (failures > 0) needs.log.info({ failures }, 'events are relayed again');
      failures = 0;
      return restMs;
    } catch (error) {
      failures += 1;
      needs.metrics.events.inc({ outcome: 'failed' });
      if (failures === 1) needs.log.warn({ err: error }, 'events cannot be relayed now; they wait in the outbox');
      return Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 6), POLL_MS) * (0.5 + Math.random() / 2);
    }
  }

  async function round(): Promise<number> {
    if (handlers.waiting() > MOST_WAITING) return POLL_MS;
    const token = randomUUID();
    const lease = await needs.scripts.relayTake({ lease: KEYS.relayLease }, { token, leaseMs: LEASE_MS });
    // The holder was told to look again. If it is dead, its lease lapses first.
    if (!lease.taken) return Math.min(lease.leftMs + 1, KNOCK_MS);
    do {
      if (!(await relayDue(token))) return KNOCK_MS;
      if (performance.now() > sweepDue) await sweep(token);
    } while (await needs.scripts.relayRelease({ lease: KEYS.relayLease }, { token, leaseMs: LEASE_MS }));
    return POLL_MS;
  }

  /** Publishes until nothing is due; false when the lease was lost on the way. */
  async function relayDue(token: string): Promise<boolean> {
    for (;;) {
      const events = await dueEvents(needs.mysql);
      if (events.length === 0) return true;
      if (!(await publishEvents(needs, token, events))) return false;
      needs.metrics.events.inc({ outcome: 'published' }, events.length);
      const handled = handlers.deliver(events.map((event) => event.message));
      delivered = Promise.all([delivered, handled]);
      await atMost(HANDLERS_MS, handled);
      await settlePublished(needs.mysql, events);
      if (events.length < EVENT_BATCH) return true;
    }
  }

  /** Drops what is older than EVENTS_KEEP_DAYS, also when no new event pushes it out. */
  async function sweep(token: string): Promise<void> {
    const keep = keepMs(needs.config);
    sweepDue = performance.now() + Math.min(SWEEP_MS, keep);
    await publishEvents(needs, token, []);
    if ((await dropOldEvents(needs.mysql, keep)) > 0) sweepDue = 0;
  }

  run();
  return {
    wake() {
      asked = true;
      // While a store is down the next try is due soon anyway.
      if (failures === 0 && !closing) run();
    },
    async close() {
      closing = true;
      clearTimeout(timer);
      await running;
      await rounds();
      await delivered;
    },
  };
}

/** Publishes events under a lease; false when the lease is another's by now and nothing was published. */
export const publishEvents = ({ scripts, config }: Pick<Deps, 'scripts' | 'config'>, token: string, events: StoredEvent[]): Promise<boolean> =>
  scripts.relayPublish({ stream: KEYS.events, lease: KEYS.relayLease }, { token, leaseMs: LEASE_MS, keepMs: keepMs(config), events });

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
