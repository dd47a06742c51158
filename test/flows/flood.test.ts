import t from 'tap';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { figure } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { converse, request } from '../support/raw.js';

const residentMiB = (pid: number): number => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

const CHUNK = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);

/** Bodies without measure: announced, sent, in chunks for ever, or never finished. */
const FLOODS: [string, Buffer][] = [
  [request('POST /api/auth/login', ['Content-Type: application/json', 'Content-Length: 10000000000']), Buffer.alloc(64 * 1024, 'x')],
  [request('POST /api/auth/login', ['Content-Type: application/json', 'Content-Length: 10485760']), Buffer.alloc(64 * 1024, 'x')],
  [request('POST /nowhere', ['Transfer-Encoding: chunked']), CHUNK],
  [request('POST /api/auth/login', ['Content-Type: application/json', 'Content-Length: 16384']), Buffer.from('[')],
];

t.test('200 sockets that pour bodies without measure cost next to no memory, and end with 413', { timeout: 60_000 }, async (t) => {
  const { nodes, account } = await startNodes(t, 1);
  const node = nodes[0]!;
  const port = Number(new URL(node.base).port);
  const { email, password } = await account();
  await node.client().login(email, password);
  const before = residentMiB(node.pid);
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, residentMiB(node.pid))), 50);

  const talks = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const [head, piece] = FLOODS[i % FLOODS.length]!;
      const talk = await converse(port, { timeoutMs: 20_000 });
      talk.send(head);
      for (let sent = 0; sent < 160 && talk.socket.writable; sent += 1) {
        talk.send(piece);
        await pause(5);
      }
      return talk;
    }),
  );
  const floods = talks.filter((_, i) => i % FLOODS.length !== 3);
  await Promise.all(floods.map((talk) => talk.closed));
  clearInterval(watch);
  for (const talk of talks) talk.socket.destroy();
  const refused = floods.filter((talk) => talk.rest().startsWith('HTTP/1.1 413 ')).length;
  t.ok(refused >= floods.length * 0.9, `${refused} of ${floods.length} read their 413`);
  figure(t, 'T40', { did: '200 sockets: 10 GB announced, 10 MB sent, chunks for ever, never finished', figure: `${(most - before).toFixed(1)} MiB more at most; ${refused} of ${floods.length} read their 413`, ok: most - before <= 32 && refused >= floods.length * 0.9 });
  t.equal((await node.client().login(email, password)).status, 200);
});
