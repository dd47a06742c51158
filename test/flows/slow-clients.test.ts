// Mostly waits.

import t from 'tap';
import { setTimeout as pause } from 'node:timers/promises';
import { listen } from '../../src/http/server.js';
import { startApp } from '../support/app.js';
import { figure, scaled } from '../support/figures.js';
import { atMost } from '../support/patience.js';
import { converse, request, type Conversation } from '../support/raw.js';

/** The parser's own patience is 10 s, and its timers have a grain of about 4. */
const CLOSED_MS = atMost(15_000);

const SOCKETS = scaled(200, 2_000);

const endOf = (talk: Conversation): Promise<boolean> => Promise.race([talk.closed.then(() => true), pause(CLOSED_MS, false, { ref: false })]);

function drip(talk: Conversation, bytes: string): void {
  let at = 0;
  const timer = setInterval(() => {
    if (talk.socket.writable) talk.send(bytes[at++ % bytes.length]!);
  }, 1000);
  void talk.closed.then(() => clearInterval(timer));
}

t.test('clients that send or read a byte a second are closed within 15 s, and nobody waits for them', { timeout: 90_000 }, async (t) => {
  const { app, client, account } = await startApp(t);
  const { email, password } = await account();
  const large = await listen({ host: '127.0.0.1', port: 0, tls: null, handle: () => Promise.resolve({ status: 200, body: Buffer.alloc(32 * 1024 * 1024) }), refuse: () => ({ status: 400, body: '' }) });
  t.teardown(() => large.close(0));
  const slow: Conversation[] = [];
  // Not all at once: the queue of a listening socket is short.
  while (slow.length < SOCKETS) slow.push(...(await Promise.all(Array.from({ length: 100 }, () => converse(app.port)))));
  slow.forEach((talk, i) => {
    if (i % 2) talk.send(request('POST /api/auth/login', ['Content-Type: application/json', 'Content-Length: 10000']));
    else talk.send('GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    drip(talk, 'slow');
  });
  const reader = await converse(large.port);
  reader.send(request('GET /'));
  reader.socket.pause();
  const silent = await converse(app.port);

  const started = performance.now();
  t.equal((await client().login(email, password)).status, 200);
  const served = performance.now() - started;
  t.ok(served < atMost(1000), 'a good client is served at once');
  const ends = await Promise.all([...slow, silent].map(endOf));
  const open = ends.filter((closed) => !closed).length;
  figure(t, 'T49', { did: `${slow.length} sockets at a byte a second (heads and bodies), one silent, one that reads nothing`, figure: `${open} open after ${CLOSED_MS / 1000} s; a good login meanwhile in ${served.toFixed(0)} ms`, ok: open === 0 && served < atMost(1000) });
  reader.socket.resume();
  await t.rejects(reader.reply(), /ended before a whole reply/, 'who did not read was closed as well');
  t.equal((await client().login(email, password)).status, 200);
});
