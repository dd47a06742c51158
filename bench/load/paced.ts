import { Agent, request } from 'node:http';
import type { Sender } from './traffic.js';
import { kindOf } from './traffic.js';
import type { Window } from './window.js';

/** uWebSockets.js closes idle connections after 10 s; ours go before, so that none is closed under a request. */
const IDLE_MS = 4_000;
const TIMEOUT_MS = 10_000;
const MOST_SOCKETS = 4_096;

/**
 * Sends a fixed number of requests per second, evenly spaced, whatever the answers do. Each is timed from the
 * moment it was due, so that a stall counts for all whom it would have kept waiting. (autocannon's own rate
 * limit sends each second's requests in one burst.)
 */
export async function runPaced(base: string, perSecond: number, senders: Sender[], window: Window): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: MOST_SOCKETS, timeout: IDLE_MS });
  const open = new Set<Promise<void>>();
  const started = performance.now();
  for (let sent = 0; ; ) {
    const now = performance.now();
    if (now >= window.to) break;
    for (let due = started + (sent * 1000) / perSecond; due <= now; due = started + (sent * 1000) / perSecond) {
      sent += 1;
      window.late(due, now - due);
      const sender = senders[sent % senders.length]!;
      const one: Promise<void> = send(base, agent, { ...sender.first, body: sender.next(0, '') ?? sender.first.body }).then((kind) => {
        window.reply(due, kind, performance.now() - due);
        open.delete(one);
      });
      open.add(one);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(open);
  agent.destroy();
}

function send(base: string, agent: Agent, { method, path, headers, body }: Omit<Sender['first'], 'body'> & { body: string | undefined }): Promise<string> {
  return new Promise((resolve) => {
    const none = (): void => resolve('none');
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const sent = request(base + path, { method, agent, headers: { ...headers, ...length } }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on('data', (chunk: Buffer) => chunks.push(chunk));
      reply.on('error', none);
      reply.on('end', () => resolve(kindOf(reply.statusCode!, Buffer.concat(chunks).toString())));
    });
    sent.on('error', none);
    const timer = setTimeout(() => sent.destroy(new Error('no reply')), TIMEOUT_MS);
    sent.on('close', () => clearTimeout(timer));
    sent.end(body);
  });
}
