import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import type * as Uws from 'uWebSockets.js';
import { Exchange, type Answering, type Head } from './exchange.js';

// uWebSockets.js reads this once, while it loads; its default of 4 KiB for all headers locks out
// browsers that carry many cookies. Hence `require` at run time rather than an import.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';
const uws = createRequire(import.meta.url)('uWebSockets.js') as typeof Uws & { _cfg?(option: string): void };
// Replies need not say which server, and which version of it, wrote them.
uws._cfg?.('silent');

export interface ServerOptions extends Answering {
  host: string;
  port: number;
  tls: { certFile: string; keyFile: string } | null;
}

export interface Server {
  readonly port: number;
  /**
   * Stops listening, waits at most `drainMs` for the requests under way, closes every socket. Replies say
   * "Connection: close" meanwhile; sockets that stay silent for a moment are closed before the time is up.
   */
  close(drainMs: number): Promise<void>;
}

/** How often handlers that take too long are looked for, in ms. */
const DUE_EVERY_MS = 500;

/** Once no request was seen for so long, in ms, the sockets still open are taken to be idle. */
const QUIET_MS = 300;

/**
 * Binds a uWebSockets.js app to one handler.
 * @throws Error that names the port that is taken or the certificate that cannot be used
 */
export async function listen(options: ServerOptions): Promise<Server> {
  const app = createApp(options.tls);
  const open = new Set<Exchange>();
  let sockets = 0;
  let lastSeen = 0;
  let stopping = false;
  const isStopping = (): boolean => stopping;

  app.filter((_res, change) => {
    sockets += Number(change);
  });
  app.any('/*', (res, req) => {
    const head = snapshot(res, req);
    lastSeen = head.receivedAt;
    const exchange: Exchange = new Exchange(res, head, options, () => open.delete(exchange), isStopping);
    open.add(exchange);
    exchange.read();
  });

  const overdue = setInterval(() => {
    const now = performance.now();
    for (const exchange of open) exchange.checkDue(now);
  }, DUE_EVERY_MS);
  overdue.unref();

  const socket = await bind(app, options);
  const port = uws.us_socket_local_port(socket);

  async function stop(drainMs: number): Promise<void> {
    stopping = true;
    uws.us_listen_socket_close(socket);
    const now = performance.now();
    const isBusy = (): boolean => open.size > 0 || (sockets > 0 && performance.now() - Math.max(lastSeen, now) < QUIET_MS);
    while (isBusy() && performance.now() < now + drainMs) await new Promise((resolve) => setTimeout(resolve, 10));
    clearInterval(overdue);
    app.close();
  }

  let stopped: Promise<void> | undefined;
  return {
    port,
    // Once: to close a listening socket twice ends the process with a segmentation fault.
    close: (drainMs) => (stopped ??= stop(drainMs)),
  };
}

function createApp(tls: ServerOptions['tls']): Uws.TemplatedApp {
  if (!tls) return uws.App();
  try {
    return uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
  } catch (cause) {
    throw new Error(`${tls.certFile} and ${tls.keyFile} are not a readable PEM certificate and its key`, { cause });
  }
}

/** LIBUS_LISTEN_EXCLUSIVE_PORT; without it a second node on the same port would silently share it. */
const EXCLUSIVE_PORT = 1 as never;

function bind(app: Uws.TemplatedApp, { host, port }: ServerOptions): Promise<Uws.us_listen_socket> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, EXCLUSIVE_PORT, (socket) => {
      if (socket) resolve(socket);
      else reject(new Error(`cannot listen on ${host}:${port}: the port is taken or the address is not of this machine`));
    });
  });
}

function snapshot(res: Uws.HttpResponse, req: Uws.HttpRequest): Head {
  const values = new Map<string, string>();
  let repeated: Set<string> | null = null;
  req.forEach((name, value) => {
    const before = values.get(name);
    if (before !== undefined) (repeated ??= new Set()).add(name);
    values.set(name, before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`);
  });
  return {
    requestId: randomUUID(),
    receivedAt: performance.now(),
    method: req.getCaseSensitiveMethod(),
    path: req.getUrl(),
    query: req.getQuery() ?? '',
    headers: { get: (name) => values.get(name), twice: (name) => repeated !== null && repeated.has(name) },
    // The address of the socket itself, never of a PROXY preamble that anyone can send.
    peer: Buffer.from(res.getRemoteAddressAsText()).toString(),
  };
}
