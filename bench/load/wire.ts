import { connect, type Socket } from 'node:net';

/** A request whose letters are all ASCII. */
export interface Request {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
}

export const AGENT = { 'user-agent': 'portcullis-bench' };
export const JSON_HEADERS = { ...AGENT, 'content-type': 'application/json' };

/**
 * A client that takes as little of the machine as it can: kept-alive connections, one request at a time on each,
 * one buffer that all replies are read into, nothing of node:http. It knows replies with a Content-Length alone.
 */
export interface Wire {
  /** Calls back once; with status 0 when no reply came. */
  send(request: Request, done: (status: number, body: string) => void): void;
  close(): void;
}

/** uWebSockets.js closes idle connections after 10 s; ours go before, so that none is closed under a request. */
const IDLE_MS = 4_000;
const TIMEOUT_MS = 10_000;
const MOST_SOCKETS = 8_192;
const BUFFER = 64 * 1024;

interface Line {
  socket: Socket;
  /** What has come of the reply that is awaited. */
  pending: string;
  done: ((status: number, body: string) => void) | null;
  since: number;
}

export function openWire(base: string): Wire {
  const { hostname, port, host } = new URL(base);
  const idle: Line[] = [];
  const open = new Set<Line>();
  const buffer = Buffer.allocUnsafe(BUFFER);
  // One timer for all: a timer per request would cost as much as the request.
  const watch = setInterval(() => {
    const late = performance.now() - TIMEOUT_MS;
    for (const line of open) if (line.done && line.since < late) line.socket.destroy();
  }, 1_000);

  function dial(): Line {
    const callback = (bytes: number): boolean => (take(line, buffer.toString('latin1', 0, bytes)), true);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread: { buffer, callback } });
    const line: Line = { socket, pending: '', done: null, since: 0 };
    open.add(line);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(line);
      settle(line, 0, '');
    });
    return line;
  }

  function take(line: Line, text: string): void {
    const whole = line.pending === '' ? text : line.pending + text;
    line.pending = whole;
    const head = whole.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(whole)?.[1] ?? 0);
    if (whole.length < head + 4 + length) return;
    line.pending = '';
    line.since = performance.now();
    if (/\r\nconnection: *close/i.test(whole)) line.socket.destroy();
    else idle.push(line);
    settle(line, Number(whole.slice(9, 12)), whole.slice(head + 4));
  }

  function settle(line: Line, status: number, body: string): void {
    const { done } = line;
    line.done = null;
    done?.(status, body);
  }

  /** The connection used last is the least likely to be closed. */
  function pick(now: number): Line | null {
    for (let line = idle.pop(); line; line = idle.pop()) {
      if (!line.socket.destroyed && now - line.since < IDLE_MS) return line;
      line.socket.destroy();
    }
    return open.size < MOST_SOCKETS ? dial() : null;
  }

  return {
    send(request, done) {
      const now = performance.now();
      const line = pick(now);
      if (!line) return done(0, '');
      line.done = done;
      line.since = now;
      line.socket.write(textOf(request, host), 'latin1');
    },
    close() {
      clearInterval(watch);
      for (const line of open) line.socket.destroy();
    },
  };
}

function textOf({ method, path, headers, body = '' }: Request, host: string): string {
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) text += `${name}: ${headers[name]!}\r\n`;
  if (method === 'POST') text += `content-length: ${body.length}\r\n`;
  return `${text}\r\n${body}`;
}
