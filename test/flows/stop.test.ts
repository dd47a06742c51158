import t from 'tap';
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { figure } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { atMost } from '../support/patience.js';

/** One request over a kept socket. `unanswered`: the request was accepted on a socket that then ended without a reply. */
function ask(agent: Agent, base: string, path: string, token: string): Promise<'answered' | 'closing' | 'refused' | 'unanswered'> {
  return new Promise((resolve) => {
    const sent = httpRequest(base + path, { agent, headers: { authorization: `Bearer ${token}` } }, (reply) => {
      reply.resume().once('end', () => resolve(reply.headers.connection === 'close' ? 'closing' : 'answered'));
    });
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'unanswered'));
    sent.end();
  });
}

t.test('told to stop under load, a node answers every request it accepted, says close, and ends with code 0', { timeout: 90_000 }, async (t) => {
  const { nodes, account } = await startNodes(t, 1, { LOGIN_DELAYS_S: '20' });
  const node = nodes[0]!;
  const { email, password } = await account();
  const token = (await node.client().login(email, password)).body['accessToken'] as string;
  const agent = new Agent({ keepAlive: true, maxSockets: 40 });
  t.teardown(() => agent.destroy());
  const outcomes: string[] = [];
  let stopping = false;

  const held = node.client().login(email, 'wrong');
  // 40 clients with some 12 requests a second each: about 500 in all.
  const clients = Array.from({ length: 40 }, async () => {
    for (;;) {
      const outcome = await ask(agent, node.base, '/api/auth/profile', token);
      outcomes.push(outcome);
      if (outcome === 'refused' || (stopping && outcome === 'unanswered')) return;
      await pause(60 + Math.random() * 40);
    }
  });
  await pause(1000);
  stopping = true;
  const started = performance.now();
  const ended = node.stop('SIGTERM');
  t.match(await held, { status: 401, body: { code: 'INVALID_CREDENTIALS' } }, 'a held reply goes out at once');
  t.equal(await ended, 0);
  const ms = performance.now() - started;
  t.ok(ms < atMost(10_000));
  await Promise.all(clients);
  const lost = outcomes.filter((outcome) => outcome === 'unanswered').length;
  figure(t, 'T65', { did: `SIGTERM amid ${outcomes.length} requests on 40 kept sockets and a held reply`, figure: `${lost} without a reply, exit ${String(await ended)} after ${ms.toFixed(0)} ms`, ok: lost === 0 && ms < atMost(10_000) && (await ended) === 0 });
  t.ok(outcomes.includes('closing'), 'replies said close');
});

t.test('told to stop while logins and refreshes share statements, a node finishes each of them', { timeout: 90_000 }, async (t) => {
  const { nodes, account } = await startNodes(t, 1, { HASH_THREADS: '1' });
  const node = nodes[0]!;
  const { email, password } = await account();
  const tokens = await Promise.all(Array.from({ length: 10 }, async () => (await node.client().login(email, password)).body['refreshToken']));
  const logins = Array.from({ length: 20 }, () => node.client().login(email, password));
  await Promise.race(logins);
  const refreshes = tokens.map((token) => node.client().refresh(token));
  await Promise.race(refreshes);
  const ended = node.stop('SIGTERM');
  const statuses = (await Promise.all([...logins, ...refreshes])).map(({ status }) => status);
  t.same(statuses, statuses.map(() => 200));
  t.equal(await ended, 0);
});

t.test('while a node stops it is alive but not ready', async (t) => {
  const { nodes, account } = await startNodes(t, 1);
  const node = nodes[0]!;
  await account();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const status = (path: string): Promise<number> => new Promise((resolve, reject) => httpRequest(node.base + path, { agent }, (reply) => reply.resume().once('end', () => resolve(reply.statusCode!))).once('error', reject).end());
  t.equal(await status('/health/ready'), 200);
  const ended = node.stop('SIGTERM');
  await pause(50);
  t.equal(await status('/health/ready'), 503);
  t.equal(await ended, 0);
});
