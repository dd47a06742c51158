import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Cluster, Redis } from 'ioredis';
import { dial } from './cluster.js';
import type { Teardown } from './stores.js';

/** An event as other services get it. */
export interface Heard {
  id: string;
  type: string;
  time: string;
  [field: string]: unknown;
}

/** Another service: hears every event over Redis, and is asked before deletions. */
export interface OtherService {
  /** Events so far, in the order of their arrival, and questions about deletions. */
  heard: Heard[];
  questions: Heard[];
  /** Its reason against deletions from now on; undefined agrees. */
  object: (reason: string | undefined) => void;
  /** The same events, as the stream has them. */
  streamed: () => Promise<Heard[]>;
  redis: Redis | Cluster;
}

/** @param source its name in DELETION_VALIDATORS */
export async function otherService(t: Teardown, redisUrl: string, source: string): Promise<OtherService> {
  const [redis, subscriber] = [dial(redisUrl), dial(redisUrl)];
  t.teardown(() => [redis, subscriber].forEach((client) => client.disconnect()));
  const [heard, questions]: [Heard[], Heard[]] = [[], []];
  let objection: string | undefined;
  subscriber.on('pmessage', (_pattern, channel: string, text: string) => {
    const event = JSON.parse(text) as Heard;
    if (event.type !== channel) throw new Error(`${event.type} came on ${channel}`);
    if (channel !== 'identity.user.pre_deletion_validate') return void heard.push(event);
    questions.push(event);
    void redis.rpush(event['replyTo'] as string, JSON.stringify({ source, reason: objection }));
  });
  await subscriber.psubscribe('identity.*');
  return {
    ...{ heard, questions, redis },
    object: (reason) => (objection = reason),
    streamed: async () => (await redis.xrange('idp:events', '-', '+')).map(([, fields]) => JSON.parse(fields[1]!) as Heard),
  };
}

/** A message as the provider of a channel gets it. */
export interface Provided {
  to: string;
  text: string;
  template: string;
}

/** A provider of SMS or WhatsApp messages that takes every one. */
export async function startProvider(t: Teardown): Promise<{ url: string; messages: Provided[] }> {
  const messages: Provided[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      messages.push(JSON.parse(body) as Provided);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, messages };
}
