import type { HttpResponse } from 'uWebSockets.js';
import { BODY_MAX } from './body.js';
import type { Headers, Reply } from './call.js';
import { isBadlyFramed } from './framing.js';

/** A request as the socket gave it: everything is copied before the first await. */
export interface Incoming {
  readonly requestId: string;
  /** performance.now() when the headers had arrived. */
  readonly receivedAt: number;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Headers;
  readonly peer: string;
  readonly body: Buffer;
  /** Aborts when the client leaves. Made when it is asked for, since most requests never do. */
  gone(): AbortSignal;
}

export type Head = Omit<Incoming, 'body' | 'gone'>;

/** Why a request is refused before anyone looks at it. */
export type Refusal = 'too-large' | 'bad-framing' | 'timeout';

/** Header lines made ready once: values are written as they are, so one of them can carry all the lines behind it. */
export interface HeaderBlock {
  readonly name: string;
  readonly rest: string;
}

export function headerBlock(headers: Record<string, string>): HeaderBlock {
  const [[name, value], ...more] = Object.entries(headers) as [[string, string], ...[string, string][]];
  return { name, rest: [clean(value), ...more.map(([other, text]) => `${other}: ${clean(text)}`)].join('\r\n') };
}

/** A reply as it is written: after its own headers comes the block. */
export interface Sent {
  status: number;
  headers?: Record<string, string> | undefined;
  block?: HeaderBlock | undefined;
  cookies?: Reply['cookies'] | undefined;
  body?: Reply['body'] | undefined;
  stream?: Reply['stream'] | undefined;
}

export interface Answering {
  /** Answers a request; must never reject. */
  handle(incoming: Incoming): Promise<Sent>;
  refuse(incoming: Incoming, why: Refusal): Sent;
}

/** After the body a handler has so long, in ms: uWebSockets.js has no timeout of its own there. */
export const HANDLE_MS = 30_000;
/**
 * Of a body that is too large so many bytes are thrown away, for so long in ms, before the reply closes the socket:
 * a close with data on its way makes many clients lose the reply.
 */
const DISCARD_MAX = 1024 * 1024;
const DISCARD_MS = 1000;

const NOTHING = Buffer.alloc(0);

const STATUS = new Map<number, string>(
  Object.entries({ 200: 'OK', 202: 'Accepted', 204: 'No Content', 302: 'Found', 304: 'Not Modified', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 409: 'Conflict', 410: 'Gone', 413: 'Content Too Large', 415: 'Unsupported Media Type', 429: 'Too Many Requests', 500: 'Internal Server Error', 502: 'Bad Gateway', 503: 'Service Unavailable' }).map(([code, text]) => [Number(code), `${code} ${text}`]),
);

/** One request and its reply: abort-safe, written exactly once, in one corked write. */
export class Exchange {
  private leaving: AbortController | undefined;
  private aborted = false;
  private answered = false;
  private refused = false;
  private deadline: NodeJS.Timeout | undefined;
  /** performance.now() at which the handler's time is up. */
  private dueAt = Infinity;
  /** Resumes a streamed reply when the socket takes more, or is gone. */
  private resume: (() => void) | undefined;

  constructor(
    private readonly res: HttpResponse,
    private readonly head: Head,
    private readonly answering: Answering,
    private readonly done: () => void,
    private readonly isStopping: () => boolean,
  ) {
    // First of all: an abort without a listener ends the process.
    res.onAborted(() => {
      this.aborted = true;
      this.leaving?.abort();
      this.resume?.();
      this.finish();
    });
  }

  /** Reads the body and has the request answered. Nothing is done before its last byte is there. */
  read(): void {
    if (isBadlyFramed(this.head.headers)) return this.refuse('bad-framing');
    const chunks: Buffer[] = [];
    let size = 0;
    if (Number(this.head.headers.get('content-length') ?? 0) > BODY_MAX) this.refuseSoon();
    this.res.onData((chunk, isLast) => {
      if (this.refused || this.aborted) return;
      size += chunk.byteLength;
      if (size > BODY_MAX) {
        chunks.length = 0;
        if (isLast || size > DISCARD_MAX) this.refuse('too-large');
        else this.refuseSoon();
        return;
      }
      // The chunk's memory is only valid now, so it is copied.
      if (chunk.byteLength > 0) chunks.push(Buffer.from(new Uint8Array(chunk)));
      if (isLast) this.answer(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
  }

  private answer(body: Buffer): void {
    this.dueAt = performance.now() + HANDLE_MS;
    this.answering
      .handle(this.incoming(body))
      .then((reply) => (reply.stream ? this.pour(reply, reply.stream) : this.write(reply, false)))
      // What cannot be written cannot be answered either; the process goes on.
      .catch(() => this.drop());
  }

  /** Refuses a request whose handler takes too long. The server looks now and then, which is cheaper than a timer for each. */
  checkDue(now: number): void {
    if (now > this.dueAt) this.refuse('timeout');
  }

  private incoming(body: Buffer): Incoming {
    const { requestId, receivedAt, method, path, query, headers, peer } = this.head;
    return { requestId, receivedAt, method, path, query, headers, peer, body, gone: () => this.gone() };
  }

  private gone(): AbortSignal {
    this.leaving ??= new AbortController();
    if (this.aborted) this.leaving.abort();
    return this.leaving.signal;
  }

  private refuseSoon(): void {
    this.deadline ??= setTimeout(() => this.refuse('too-large'), DISCARD_MS);
  }

  /**
   * Answers in place of the handler and closes, since what follows on the socket is not to be trusted. Not at once:
   * inside a callback of uWebSockets.js the close would be forgotten and what follows served. Until then the request
   * is pending, and one that follows a pending request closes the socket.
   */
  private refuse(why: Refusal): void {
    if (this.refused) return;
    this.refused = true;
    setImmediate(() => {
      if (!this.answered && !this.aborted) this.write(this.answering.refuse(this.incoming(NOTHING), why), true);
    });
  }

  private write(reply: Sent, close: boolean): void {
    if (this.answered || this.aborted) return;
    this.answered = true;
    this.res.cork(() => this.writeWhole(reply, close || this.isStopping()));
    this.finish();
  }

  private writeWhole(reply: Sent, last: boolean): void {
    const body = reply.body ?? '';
    this.writeHead(reply);
    if (reply.status === 204 || reply.status === 304) {
      if (last) this.res.writeHeader('Connection', 'close');
      // With any argument, undefined too, this would write a Content-Length, which these must not have, or not this one.
      this.res.endWithoutBody();
    } else if (this.head.method === 'HEAD' && !last) {
      // A length given to endWithoutBody would leave the reply unfinished for ever, so it is a header.
      this.res.writeHeader('Content-Length', String(Buffer.byteLength(body)));
      this.res.endWithoutBody();
    } else {
      // Told to close, uWebSockets.js adds "Connection: close" itself.
      this.res.end(this.head.method === 'HEAD' ? '' : body, last);
    }
  }

  /** Writes a streamed body at the speed of the client. */
  private async pour(reply: Sent, stream: AsyncIterable<string | Buffer>): Promise<void> {
    if (this.answered || this.aborted) return;
    this.answered = true;
    this.dueAt = Infinity;
    try {
      this.res.onWritable(() => {
        this.resume?.();
        return true;
      });
      this.res.cork(() => {
        this.writeHead(reply);
        // Told to close at the end, uWebSockets.js would write this line into the body.
        if (this.isStopping()) this.res.writeHeader('Connection', 'close');
      });
      for await (const piece of stream) {
        if (this.aborted) return;
        let room = true;
        this.res.cork(() => (room = this.res.write(piece)));
        if (!room && !this.aborted) await new Promise<void>((resolve) => (this.resume = resolve));
        if (this.aborted) return;
      }
      if (!this.aborted) this.res.cork(() => this.res.end());
    } catch {
      // The status is sent already: a broken end is the only way left to say that the body is not whole.
      this.drop();
    } finally {
      this.finish();
    }
  }

  private writeHead(reply: Sent): void {
    this.res.writeStatus(STATUS.get(reply.status) ?? String(reply.status));
    for (const name in reply.headers) this.res.writeHeader(name, clean(reply.headers[name]!));
    if (reply.block) this.res.writeHeader(reply.block.name, reply.block.rest);
    if (reply.cookies) for (const cookie of reply.cookies) this.res.writeHeader('Set-Cookie', clean(cookie));
  }

  private drop(): void {
    if (!this.aborted) this.res.close();
  }

  private finish(): void {
    clearTimeout(this.deadline);
    this.done();
  }
}

// uWebSockets.js writes header values as they are; a line break in one would start another header.
const clean = (value: string): string => (value.search(UNCLEAN) < 0 ? value : value.replace(UNCLEAN, ''));
const UNCLEAN = /[\r\n\0]/g;
