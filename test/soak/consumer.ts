import { Redis } from 'ioredis';
import type { Heard } from '../support/outside.js';
import type { Teardown } from '../support/stores.js';

/** Another service that hears events: by the channels while it is there, by the stream for the rest. */
export interface Consumer {
  /** Every event that it got, by its id. */
  events: Map<string, Heard>;
  /** Messages that came under the id of another one. */
  clashes: string[];
  leave: () => void;
  comeBack: () => Promise<void>;
}

const LOOK_MS = 250;

export function startConsumer(t: Teardown, url: string): Consumer {
  const events = new Map<string, Heard>();
  const clashes: string[] = [];
  const dialled = (): Redis => {
    const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, commandTimeout: 2000, retryStrategy: () => 100 });
    client.on('error', () => undefined);
    return client;
  };
  const [reader, subscriber] = [dialled(), dialled()];
  const take = (text: string): void => {
    const event = JSON.parse(text) as Heard;
    const known = events.get(event.id);
    if (known && JSON.stringify(known) !== JSON.stringify(event)) clashes.push(`${event.id} stands for two messages`);
    events.set(event.id, event);
  };
  subscriber.on('pmessage', (_pattern, channel: string, text: string) => {
    if (channel !== 'identity.user.pre_deletion_validate') take(text);
  });
  subscriber.on('ready', () => void subscriber.psubscribe('identity.*').catch(() => undefined));
  let [last, reading] = ['0', false];
  const look = async (): Promise<void> => {
    if (reading || reader.status !== 'ready') return;
    reading = true;
    try {
      for (let found; (found = await reader.xread('COUNT', 500, 'STREAMS', 'idp:events', last)); ) {
        for (const [entry, fields] of found[0]![1]) {
          take(fields[1]!);
          last = entry;
        }
      }
    } catch {
      // Redis is away: the next look finds the rest.
    }
    reading = false;
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  const clients = [reader, subscriber];
  const comeBack = async (): Promise<void> => {
    await Promise.all(clients.map((client) => client.connect().catch(() => undefined)));
  };
  void comeBack();
  t.teardown(() => {
    clearInterval(timer);
    for (const client of clients) client.disconnect();
  });
  return { events, clashes, leave: () => clients.forEach((client) => client.disconnect()), comeBack };
}
