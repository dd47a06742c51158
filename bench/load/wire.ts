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

export interface Reply {
  status: number;
  body: string;
}

/** A client that costs little: kept-alive connections, one request at a time on each, replies with a Content-Length. */
export interface Wire {
  /** Null when no reply came. */
  send(request: Request): Promise<Reply | null>;
  close(): void;
}

/** uWebSockets.js closes idle connections after 10 s; ours go before, so that none is closed under a request. */
const IDLE_MS = 4_000;
const TIMEOUT_MS = 10_000;
const MOST_SOCKETS = 8_192;

interface Line {
  socket: Socket;
  /** What has come of the reply that is awaited. */
  pending: string;
  settle: ((reply: Reply | null) => void) | null;
  since: number;
}

export function openWire(base: string): Wire {
  const { hostname, port, host } = new URL(base);
  const idle: Line[] = [];
  const open = new Set<Line>();
  // One timer for all: a timer per request would cost as much as the request.
  const watch = setInterval(() => {
    const late = performance.now() - TIMEOUT_MS;
    for (const line of open) if (line.settle && line.since < late) line.socket.destroy();
  }, 1_000);

  function dial(): Line {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const line: Line = { socket, pending: '', settle: null, since: 0 };
    open.add(line);
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => take(line, text));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(line);
      settle(line, null);
    });
    return line;
  }

  function take(line: Line, text: string): void {
    line.pending = line.pending === '' ? text : line.pending + text;
    const head = line.pending.indexOf('\r\n\r\n');
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(line.pending.slice(0, head))?.[1] ?? 0);
    if (line.pending.length < head + 4 + length) return;
    const reply = { status: Number(line.pending.slice(9, 12)), body: line.pending.slice(head + 4, head + 4 + length) };
    const closes = /\r\nconnection: *close/i.test(line.pending.slice(0, head));
    line.pending = '';
    if (closes) line.socket.destroy();
    else idle.push(line);
    line.since = performance.now();
    settle(line, reply);
  }

  function settle(line: Line, reply: Reply | null): void {
    const waiting = line.settle;
    line.settle = null;
    waiting?.(reply);
  }

  /** The connection used last is the least likely to be closed. */
  function pick(): Line | null {
    for (let line = idle.pop(); line; line = idle.pop()) {
      if (!line.socket.destroyed && performance.now() - line.since < IDLE_MS) return line;
      line.socket.destroy();
    }
    return open.size < MOST_SOCKETS ? dial() : null;
  }

  return {
    send: (request) =>
      new Promise((resolve) => {
        const line = pick();
        if (!line) return resolve(null);
        line.settle = resolve;
        line.since = performance.now();
        line.socket.write(textOf(request, host), 'latin1');
      }),
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
