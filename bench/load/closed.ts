import autocannon from 'autocannon';
import { kindOf, type Sender } from './traffic.js';
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

/** By events and not by `onResponse`, for which autocannon takes the headers of every reply apart. */
function follow(client: autocannon.Client, sender: Sender, window: Window): void {
  client.setRequests(sender.kind === 'fixed' ? sender.requests.map((request) => ({ ...request })) : [sender.next()]);
  const chunks: Buffer[] = [];
  client.on('body', (chunk: Buffer) => void chunks.push(chunk));
  client.on('response', (status: number, _bytes: number, ms: number) => {
    const text = status === 200 && sender.kind !== 'chain' ? '' : chunks.map((chunk) => chunk.toString('latin1')).join('');
    chunks.length = 0;
    window.reply(performance.now(), kindOf(status, text), ms);
    if (sender.kind === 'fixed') return;
    if (sender.kind === 'chain' && status === 200) sender.took(text);
    const { headers, body } = sender.next();
    client.setHeadersAndBody(headers, body);
  });
}
