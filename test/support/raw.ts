import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Duplex } from 'node:stream';
import { keepReceived } from './secrets.js';
import { witnessed } from './witness.js';

/** A reply as its bytes say it; header names in lower case, repeated ones in order. */
export interface RawReply {
  status: number;
  headers: Map<string, string[]>;
  body: string;
  /** The body as a problem document, or {} when it is none. */
  problem: Record<string, unknown>;
}

/** One socket to the service, for what no HTTP client would send. */
export interface Conversation {
  send(...parts: (string | Buffer)[]): void;
  /** The next whole reply; fails when the socket ends before it. `head` for a reply to HEAD. */
  reply(head?: 'head'): Promise<RawReply>;
  /** Resolves once the other side has closed. */
  closed: Promise<void>;
  /** Everything received that no reply has taken yet. */
  rest(): string;
  socket: Duplex & { resetAndDestroy?: () => unknown };
}

/** Opens a socket; `tls` speaks TLS and takes any certificate. */
export async function converse(port: number, { tls = false, timeoutMs = 5000 }: { tls?: boolean; timeoutMs?: number } = {}): Promise<Conversation> {
  const socket = tls ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1');
  await new Promise<void>((resolve, reject) => {
    socket.once(tls ? 'secureConnect' : 'connect', () => resolve());
    socket.once('error', reject);
  });
  let received = Buffer.alloc(0);
  const asked: { method: string; path: string }[] = [];
  let ended = false;
  let look = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      ended = true;
      look();
      resolve();
    };
    socket.once('end', end).once('close', end);
  });
  // A reset after the reply is the business of whoever waits for `closed`.
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    look();
  });

  return {
    socket,
    closed,
    rest: () => received.toString('latin1'),
    send: (...parts) =>
      parts.forEach((part) => {
        asked.push(...requestsIn(part.toString('latin1')));
        socket.write(part);
      }),
    reply: (head) =>
      new Promise<RawReply>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no whole reply within ${timeoutMs} ms, only: ${received.toString('latin1')}`)), timeoutMs);
        look = () => {
          const parsed = parse(received.toString('latin1'), head !== undefined);
          if (!parsed && !ended) return;
          clearTimeout(timer);
          look = () => undefined;
          if (!parsed) return reject(new Error(`the socket ended before a whole reply, after: ${received.toString('latin1')}`));
          received = received.subarray(parsed.length);
          resolve(parsed.reply);
        };
        look();
      }).then((reply) => {
        witnessedRaw(asked.shift(), reply);
        return reply;
      }),
  };
}

/** Sends one request on a socket of its own; a reply that announces the close is checked to be followed by it. */
export async function exchange(port: number, ...parts: (string | Buffer)[]): Promise<RawReply & { closes: boolean }> {
  const talk = await converse(port);
  talk.send(...parts);
  const reply = await talk.reply(String(parts[0]).startsWith('HEAD ') ? 'head' : undefined);
  const closes = reply.headers.get('connection')?.includes('close') ?? false;
  if (closes) await talk.closed;
  talk.socket.destroy();
  return { ...reply, closes };
}

/** The lines of a request; a Host is added, and for a body its length. */
export function request(start: string, headers: string[] = [], body?: string): string {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return [`${start} HTTP/1.1`, 'Host: localhost', ...headers, ...length, '', body ?? ''].join('\r\n');
}

/** Method and path of each request that begins in a text. */
const requestsIn = (text: string): { method: string; path: string }[] => [...text.matchAll(/(?<![A-Za-z])([A-Za-z]{1,16}) (\S{1,16384}) HTTP\/1\.1\r\n/g)].map(([, method, target]) => ({ method: method!, path: target!.split('?')[0]! }));

/** A reply that comes from the service rather than from its HTTP parser or from a test's own handler. */
function witnessedRaw(asked: { method: string; path: string } | undefined, { status, headers, body }: RawReply): void {
  keepReceived(body, headers.get('set-cookie') ?? [], headers.get('location')?.[0] ?? null);
  if (asked && headers.has('x-request-id')) witnessed({ ...asked, status, header: (name) => headers.get(name.toLowerCase())?.[0] ?? null, text: body });
}

function parse(text: string, isHead: boolean): { reply: RawReply; length: number } | null {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [start, ...lines] = text.slice(0, headEnd).split('\r\n');
  const status = Number(start!.split(' ')[1]);
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  const from = headEnd + 4;
  const reply = (body: string, length: number): { reply: RawReply; length: number } => {
    const isJson = headers.get('content-type')?.[0]?.includes('json') && body !== '';
    return { reply: { status, headers, body, problem: isJson ? (JSON.parse(body) as Record<string, unknown>) : {} }, length };
  };
  if (isHead || status === 204 || status === 304 || status === 100) return reply('', from);
  if (headers.get('transfer-encoding')?.[0] === 'chunked') return unchunk(text, from, reply);
  // A refusal of the parser itself gives no length: its body ends with the socket.
  const length = headers.has('content-length') ? Number(headers.get('content-length')![0]) : text.length - from;
  return text.length < from + length ? null : reply(text.slice(from, from + length), from + length);
}

function unchunk(text: string, from: number, reply: (body: string, length: number) => { reply: RawReply; length: number }): { reply: RawReply; length: number } | null {
  let body = '';
  for (let at = from; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return null;
    const size = parseInt(text.slice(at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error(`not a chunk: ${text.slice(at, lineEnd)}`);
    const next = lineEnd + 2 + size + 2;
    if (text.length < next) return null;
    if (size === 0) return reply(body, next);
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = next;
  }
}
