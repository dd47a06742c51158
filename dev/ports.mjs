/** Free ports on 127.0.0.1. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * @param {number} port
 * @param {string} [host]
 * @returns {Promise<NodeJS.ErrnoException | null>} null when one can listen there
 */
export function whyNotListen(port, host = '127.0.0.1') {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen({ port, host, exclusive: true }, () => probe.close(() => resolve(null)));
  });
}

/**
 * Below the range the system gives to outgoing connections, so that none of them can
 * take the port between this look and the server's start.
 * @param {number} [preferred] the port of the last run: a client that is set up for it goes on working
 */
export async function freePort(preferred) {
  if (preferred && (await whyNotListen(preferred)) === null) return preferred;
  for (;;) {
    const port = randomInt(20_000, 32_000);
    if ((await whyNotListen(port)) === null) return port;
  }
}
