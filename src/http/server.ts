import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import type { Headers, Reply } from './call.js';
import { BODY_MAX } from './body.js';

// uWebSockets.js reads this once, while it loads; its default of 4 KiB for all headers locks out
// browsers that carry many cookies. Hence `require` at run time rather than an import.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';
const uws = createRequire(import.meta.url)('uWebSockets.js') as typeof import('uWebSockets.js');

/** A request as the socket gave it: everything is copied before the first await. */
export interface Incoming {
  requestId: string;
  receivedAt: number;
  method: string;
  path: string;
  query: string;
  headers: Headers;
  peer: string;
  body: Buffer;
  /** Aborts when the client leaves. */
  gone: AbortSignal;
}

/** Why a request is refused before anyone looks at it. */
export type Refusal = 'too-large' | 'bad-framing' | 'timeout';

export interface ServerOptions {
  host: string;
  port: number;
  tls: { certFile: string; keyFile: string } | null;
  /** Answers a request; must never reject. */
  handle(incoming: Incoming): Promise<Reply>;
  refuse(incoming: Incoming, why: Refusal): Reply;
}

export interface Server {
  readonly port: number;
  /** Stops listening, waits at most `drainMs` for the requests under way, closes every socket. */
  close(drainMs: number): Promise<void>;
}

/** After the body a handler has so long, in ms: uWebSockets.js has no timeout of its own there. */
const HANDLE_MS = 30_000;

const STATUS = new Map<number, string>(
  Object.entries({ 200: 'OK', 202: 'Accepted', 204: 'No Content', 302: 'Found', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 409: 'Conflict', 410: 'Gone', 413: 'Content Too Large', 415: 'Unsupported Media Type', 429: 'Too Many Requests', 500: 'Internal Server Error', 503: 'Service Unavailable' }).map(([code, text]) => [Number(code), `${code} ${text}`]),
);

/** Binds a uWebSockets.js app to one handler. */
export async function listen(options: ServerOptions): Promise<Server> {
  const { tls } = options;
  const app = tls ? uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile }) : uws.App();
  const open = new Set<Exchange>();
  let stopping = false;

  app.any('/*', (res, req) => {
    const exchange = new Exchange(res, snapshot(res, req), () => open.delete(exchange), () => stopping);
    open.add(exchange);
    exchange.read(
      (incoming) => options.handle(incoming),
      (incoming, why) => options.refuse(incoming, why),
    );
  });

  const socket = await bind(app, options);
  const port = uws.us_socket_local_port(socket);
  return {
    port,
    async close(drainMs) {
      stopping = true;
      uws.us_listen_socket_close(socket);
      const deadline = performance.now() + drainMs;
      while (open.size > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
      app.close();
    },
  };
}

function bind(app: TemplatedApp, { host, port }: ServerOptions): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    // Without the exclusive flag (1) a second node on the same port would silently share it.
    app.listen(host, port, 1, (socket) => {
      if (socket) resolve(socket);
      else reject(new Error(`cannot listen on ${host}:${port}: the port is taken or the address is not of this machine`));
    });
  });
}

type Head = Omit<Incoming, 'body' | 'gone'>;

function snapshot(res: HttpResponse, req: HttpRequest): Head {
  const values = new Map<string, string>();
  const repeated = new Set<string>();
  req.forEach((name, value) => {
    const before = values.get(name);
    if (before !== undefined) repeated.add(name);
    values.set(name, before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`);
  });
  return {
    requestId: randomUUID(),
    receivedAt: performance.now(),
    method: req.getCaseSensitiveMethod(),
    path: req.getUrl(),
    query: req.getQuery() ?? '',
    headers: { get: (name) => values.get(name), twice: (name) => repeated.has(name) },
    // The address of the socket itself, never of a PROXY preamble that anyone can send.
    peer: Buffer.from(res.getRemoteAddressAsText()).toString(),
  };
}

/** One request and its reply: abort-safe, written exactly once, in one corked write. */
class Exchange {
  private readonly leaving = new AbortController();
  private aborted = false;
  private answered = false;
  private deadline: NodeJS.Timeout | undefined;

  constructor(
    private readonly res: HttpResponse,
    private readonly head: Head,
    private readonly done: () => void,
    private readonly isStopping: () => boolean,
  ) {
    // First of all: an abort without a listener ends the process.
    res.onAborted(() => {
      this.aborted = true;
      this.leaving.abort();
      this.finish();
    });
  }

  read(handle: (incoming: Incoming) => Promise<Reply>, refuse: (incoming: Incoming, why: Refusal) => Reply): void {
    const chunks: Buffer[] = [];
    let size = 0;
    const incoming = (): Incoming => ({ ...this.head, body: Buffer.concat(chunks), gone: this.leaving.signal });
    const badFraming = isBadlyFramed(this.head.headers);
    this.res.onData((chunk, isLast) => {
      if (this.answered || this.aborted) return;
      size += chunk.byteLength;
      if (size > BODY_MAX) return this.write(refuse({ ...this.head, body: Buffer.alloc(0), gone: this.leaving.signal }, 'too-large'), true);
      // The chunk's memory is only valid now.
      if (chunk.byteLength > 0) chunks.push(Buffer.from(Buffer.from(chunk)));
      if (!isLast) return;
      // A request whose end two readers could see at different places must have no effect.
      if (badFraming) return this.write(refuse(incoming(), 'bad-framing'), true);
      const request = incoming();
      this.deadline = setTimeout(() => this.write(refuse(request, 'timeout'), true), HANDLE_MS);
      void handle(request).then((reply) => (reply.stream ? this.pour(reply, reply.stream) : this.write(reply, false)));
    });
  }

  private write(reply: Reply, close: boolean): void {
    if (this.answered || this.aborted) return;
    this.answered = true;
    const last = close || this.isStopping();
    this.res.cork(() => {
      this.writeHead(reply, last);
      if (reply.body === undefined) this.res.endWithoutBody(reply.status === 204 ? undefined : 0, last);
      else this.res.end(reply.body, last);
    });
    this.finish();
  }

  /** Writes a streamed body at the speed of the client. */
  private async pour(reply: Reply, stream: AsyncIterable<string | Buffer>): Promise<void> {
    if (this.answered || this.aborted) return;
    this.answered = true;
    clearTimeout(this.deadline);
    const last = this.isStopping();
    try {
      this.res.cork(() => this.writeHead(reply, last));
      for await (const piece of stream) {
        if (this.aborted) return;
        let room = true;
        this.res.cork(() => (room = this.res.write(piece)));
        if (!room) await this.drained();
      }
      if (!this.aborted) this.res.cork(() => this.res.end(undefined, last));
    } catch {
      // The status is sent already: a broken end is the only way left to say that the body is not whole.
      if (!this.aborted) this.res.close();
    } finally {
      this.finish();
    }
  }

  private drained(): Promise<void> {
    return new Promise((resolve) => {
      this.leaving.signal.addEventListener('abort', () => resolve(), { once: true });
      this.res.onWritable(() => {
        resolve();
        return true;
      });
    });
  }

  private writeHead(reply: Reply, last: boolean): void {
    this.res.writeStatus(STATUS.get(reply.status) ?? String(reply.status));
    for (const [name, value] of Object.entries(reply.headers ?? {})) this.res.writeHeader(name, clean(value));
    for (const cookie of reply.cookies ?? []) this.res.writeHeader('Set-Cookie', clean(cookie));
    if (last) this.res.writeHeader('Connection', 'close');
  }

  private finish(): void {
    clearTimeout(this.deadline);
    this.done();
  }
}

// uWebSockets.js writes header values as they are; a line break in one would start another header.
const clean = (value: string): string => value.replace(/[\r\n\0]/g, '');

/** Framing that two readers may understand differently (RFC 9112 §6.3): the way of request smuggling. */
function isBadlyFramed(headers: Headers): boolean {
  const coding = headers.get('transfer-encoding');
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return true;
  return headers.twice('content-length') || headers.twice('content-type') || (coding !== undefined && headers.get('content-length') !== undefined);
}
