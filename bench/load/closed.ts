import autocannon from 'autocannon';
import type { Sender } from './traffic.js';
import { kindOf } from './traffic.js';
import type { Window } from './window.js';

/** autocannon looks whether it should stop this often, in ms. */
const SAMPLE_MS = 50;
/** No reply within so long is an error, in s. */
const TIMEOUT_S = 10;

/** autocannon with one connection per sender: each request is sent when the one before was answered. */
export function runClosed(base: string, senders: Sender[], window: Window): Promise<void> {
  const waiting = [...senders];
  const options: autocannon.Options & { sampleInt: number } = {
    url: base,
    connections: senders.length,
    duration: (window.to - performance.now()) / 1000,
    timeout: TIMEOUT_S,
    sampleInt: SAMPLE_MS,
    setupClient: (client) => follow(client, waiting.shift()!, window),
  };
  return new Promise((resolve, reject) => {
    const instance = autocannon(options, (error: Error | null) => (error ? reject(error) : resolve()));
    instance.on('reqError', () => window.reply(performance.now(), 'none', 0));
  });
}

function follow(client: autocannon.Client, sender: Sender, window: Window): void {
  let kind = 'none';
  const onResponse = (status: number, body: string): void => {
    kind = kindOf(status, body);
    const next = sender.next(status, body);
    if (next !== null) client.setBody(next);
  };
  client.setRequests([{ ...sender.first, onResponse }]);
  client.on('response', (_status: number, _bytes: number, ms: number) => window.reply(performance.now(), kind, ms));
}
