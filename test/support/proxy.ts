import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Teardown } from './stores.js';

/** A way to a server that a test can make slow, silent or impossible. */
export interface Proxy {
  port: number;
  /** `pass` carries bytes; `hang` takes connections and bytes and gives nothing; `refuse` takes nothing, and cuts what was open. */
  become(mode: 'pass' | 'hang' | 'refuse'): Promise<void>;
  /** Resets every open connection; new ones are taken. */
  cut(): void;
  /** Each piece of bytes is held for so long, in ms, either way. */
  delay(ms: number): void;
  /** The same URL by way of the proxy. */
  via(url: string): string;
}

/** Starts a proxy to a port of this machine. */
export async function startProxy(t: Teardown, target: string): Promise<Proxy> {
  const { hostname, port: targetPort } = new URL(target);
  const pairs = new Set<[Socket, Socket]>();
  let mode: 'pass' | 'hang' | 'refuse' = 'pass';
  let latency = 0;
  let server: Server;
  let port = 0;

  const carry = (from: Socket, to: Socket): void => {
    // What comes later never overtakes, even when the delay is taken away meanwhile.
    let dueAt = 0;
    let last = Promise.resolve();
    const inTurn = (work: () => unknown): void => {
      dueAt = Math.max(dueAt, performance.now() + latency);
      const due = new Promise((resolve) => setTimeout(resolve, dueAt - performance.now()));
      last = last.then(() => due).then(() => void work());
    };
    from.on('data', (bytes) => inTurn(() => mode === 'pass' && to.writable && to.write(bytes)));
    from.on('error', () => undefined);
    from.on('close', () => inTurn(() => to.destroy()));
  };
  const open = async (): Promise<void> => {
    server = createServer({ noDelay: true }, (near) => {
      const far = connect(Number(targetPort), hostname);
      const pair: [Socket, Socket] = [near, far];
      pairs.add(pair);
      near.once('close', () => pairs.delete(pair));
      carry(near, far);
      carry(far, near);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    port = (server.address() as { port: number }).port;
  };
  const cut = (): void => {
    for (const [near, far] of pairs) {
      // Node takes a socket that is shutting down for reset and waits for it for ever, at exit: nodejs 20, TCPWrap::Reset.
      if (near.readyState === 'open') near.resetAndDestroy();
      else near.destroy();
      far.destroy();
    }
  };
  await open();
  t.teardown(() => {
    cut();
    server.close();
  });

  return {
    get port() {
      return port;
    },
    async become(next) {
      const before = mode;
      mode = next;
      if (next === 'refuse') {
        const closed = new Promise((resolve) => server.close(resolve));
        cut();
        await closed;
      } else if (before === 'refuse') await open();
    },
    cut,
    delay: (ms) => (latency = ms),
    via(url) {
      const way = new URL(url);
      way.host = `127.0.0.1:${port}`;
      return way.href;
    },
  };
}
