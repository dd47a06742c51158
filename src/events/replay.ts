import { randomUUID } from 'node:crypto';
import type { Deps } from '../deps.js';
import { eventRange, knownEvents, publishedEvents, type StoredEvent } from '../store/outbox.js';
import { KEYS, reply } from '../store/redis.js';
import type { EventMessage } from './catalogue.js';
import { KNOCK_MS, LEASE_MS, publishEvents } from './relay.js';

type Needs = Pick<Deps, 'mysql' | 'redis' | 'scripts' | 'config'>;

/** How far a replay is; `share` goes from 0 to 1. */
export interface ReplayProgress {
  published: number;
  share: number;
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const STREAM_PAGE = 128;

/**
 * The moment that `text` names: ISO 8601 such as 2026-01-31T08:00:00Z, or how long before `now`: 90s, 30m, 24h, 7d.
 * @throws an Error that says what was expected
 */
export function readSince(text: string, now: number): Date {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (amount !== undefined) return new Date(now - Number(amount) * UNITS[unit as keyof typeof UNITS]);
  const date = new Date(text);
  if (!/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(date.getTime())) throw new Error('a time such as 2026-01-31T08:00:00Z or a duration such as 90s, 30m, 24h or 7d');
  return date;
}

/**
 * Publishes the events since a time once more, with the same ids, in order per user, and gives how many.
 * Events of purged accounts stand in the stream only: they are repeated on their channels, so that the stream keeps
 * nobody's address for longer. Events that were never published are left to the relay.
 * @throws ApiError UNAVAILABLE when a store is away; running it again is safe
 */
export async function replay(needs: Needs, since: Date, progress: (done: ReplayProgress) => void = () => undefined): Promise<number> {
  // Read before anything is added to the stream: what this replay appends is no part of it.
  const end = await lastEntry(needs);
  const stored = await replayOutbox(needs, since, progress);
  const purged = end === null ? 0 : await replayPurged(needs, since, end, (published) => progress({ published: stored + published, share: 1 }));
  progress({ published: stored + purged, share: 1 });
  return stored + purged;
}

async function replayOutbox(needs: Needs, since: Date, progress: (done: ReplayProgress) => void): Promise<number> {
  const range = await eventRange(needs.mysql, since);
  if (!range) return 0;
  let published = 0;
  for (let first = range.first; ; ) {
    const events = await underLease(needs, () => publishedEvents(needs.mysql, { first, last: range.last }, since));
    if (events.length === 0) return published;
    published += events.length;
    first = events.at(-1)!.seq + 1;
    progress({ published, share: (first - range.first) / (range.last - range.first + 1) });
  }
}

/** Reads events and publishes them while no relay does, so that neither overtakes the other within a batch. */
async function underLease(needs: Needs, read: () => Promise<StoredEvent[]>): Promise<StoredEvent[]> {
  for (;;) {
    const token = randomUUID();
    const lease = await needs.scripts.relayTake({ lease: KEYS.relayLease }, { token, leaseMs: LEASE_MS });
    if (!lease.taken) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(lease.leftMs + 1, KNOCK_MS)));
      continue;
    }
    const events = await read();
    const published = await publishEvents(needs, token, events);
    // Whoever asked for a look meanwhile comes again by itself.
    while (await needs.scripts.relayRelease({ lease: KEYS.relayLease }, { token, leaseMs: LEASE_MS }));
    if (published) return events;
  }
}

async function replayPurged(needs: Needs, since: Date, end: string, progress: (published: number) => void): Promise<number> {
  let published = 0;
  for (let from = String(since.getTime()); ; ) {
    const entries = await reply(needs.redis.xrange(KEYS.events, from, end, 'COUNT', STREAM_PAGE));
    if (entries.length === 0) return published;
    from = `(${entries.at(-1)![0]}`;
    const messages = entries.map(([, fields]) => fields[1]!).map((text) => ({ text, event: JSON.parse(text) as EventMessage }));
    const recent = messages.filter(({ event }) => new Date(event.time) >= since);
    if (recent.length === 0) continue;
    const known = await knownEvents(needs.mysql, recent.map(({ event }) => event.id));
    for (const { text, event } of recent.filter((message) => !known.has(message.event.id))) {
      await needs.scripts.eventRepeat({ stream: KEYS.events }, { channel: event.type, message: text });
      published += 1;
    }
    progress(published);
  }
}

async function lastEntry({ redis }: Pick<Needs, 'redis'>): Promise<string | null> {
  const [entry] = await reply(redis.xrevrange(KEYS.events, '+', '-', 'COUNT', 1));
  return entry?.[0] ?? null;
}
