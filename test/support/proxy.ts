import { connect, createServer, type Socket } from 'node:net';
import type { Teardown } from './stores.js';

/** A TCP proxy in front of a store, to take the store away from one service alone. */
export interface Proxy {
  port: number;
  /** Bytes no longer pass, connections stay: a store that hangs. */
  hang(): void;
  /** Connections are cut and refused: a store that is down. */
  cut(): void;
  /** All is well again. */
  heal(): void;
}

export async function proxyTo(t: Teardown, port: number): Promise<Proxy> {
  const pairs = new Set<[Socket, Socket]>();
  let state: 'well' | 'hung' | 'down' = 'well';
  const server = createServer((client) => {
    if (state === 'down') return client.destroy();
    const store = connect(port, '127.0.0.1');
    const pair: [Socket, Socket] = [client, store];
    pairs.add(pair);
    for (const [from, to] of [pair, [store, client]] as const) {
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => undefined);
      from.on('close', () => {
        pairs.delete(pair);
        to.destroy();
      });
      if (state === 'hung') from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = (): void => pairs.forEach((pair) => pair.forEach((socket) => socket.destroy()));
  t.teardown(() => {
    end();
    server.close();
  });
  return {
    port: (server.address() as { port: number }).port,
    hang() {
      state = 'hung';
      pairs.forEach((pair) => pair.forEach((socket) => socket.pause()));
    },
    cut() {
      state = 'down';
      end();
    },
    heal() {
      state = 'well';
      pairs.forEach((pair) => pair.forEach((socket) => socket.resume()));
    },
  };
}
