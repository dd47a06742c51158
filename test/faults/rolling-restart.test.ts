import t from 'tap';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { until } from '../support/patience.js';
import { freePort } from '../support/stores.js';

const NODES = 3;
/** Of one client; together they send about 500 requests a second in the full run, 150 in the short one. */
const PAUSE_MS = 80;
const CLIENTS = scaled(15, 60);
const END_MS = 10_000;

type Outcome = 'refused' | 'unanswered' | { status: number; closing: boolean };

/** One request over a kept socket. `unanswered`: it was accepted, and its socket ended without a reply. */
function ask(agent: Agent, base: string, token: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const sent = request(`${base}/api/auth/profile`, { agent, headers: { authorization: `Bearer ${token}` } }, (reply) => {
      reply.resume().once('end', () => resolve({ status: reply.statusCode!, closing: reply.headers.connection === 'close' }));
      reply.once('error', () => resolve('unanswered'));
    });
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'unanswered'));
    sent.end();
  });
}

t.test('three nodes are restarted one after the other under load: each request that was accepted is answered, and each node ends with code 0', { timeout: 90_000 }, async (t) => {
  const { account, start } = await startNodes(t, 0, { MYSQL_CONNECTIONS: '4' });
  const ports = await Promise.all(Array.from({ length: NODES }, () => freePort()));
  const nodes = await Promise.all(ports.map((port) => start({ PORT: String(port) })));
  const { email, password } = await account();
  const token = (await nodes[0]!.client().login(email, password)).body['accessToken'] as string;
  const agents = nodes.map(() => new Agent({ keepAlive: true }));
  t.teardown(() => {
    over = true;
    for (const agent of agents) agent.destroy();
  });
  let over = false;
  const counts = { asked: 0, unanswered: 0, closing: 0, others: 0 };
  const startedAt = performance.now();

  // As a load balancer does: in turn, and the next node when one takes no connection.
  const clients = Array.from({ length: CLIENTS }, async (_, i) => {
    for (let turn = i; !over; turn += 1) {
      const outcome = await ask(agents[turn % NODES]!, nodes[turn % NODES]!.base, token);
      if (outcome === 'refused') {
        await pause(1);
        continue;
      }
      counts.asked += 1;
      if (outcome === 'unanswered') counts.unanswered += 1;
      else {
        if (outcome.status !== 200) counts.others += 1;
        if (outcome.closing) counts.closing += 1;
      }
      await pause(PAUSE_MS * (0.5 + Math.random()));
    }
  });
  await pause(500);
  const codes: (number | null)[] = [];
  let slowest = 0;
  for (let i = 0; i < NODES; i += 1) {
    const told = performance.now();
    codes.push(await nodes[i]!.stop('SIGTERM'));
    slowest = Math.max(slowest, performance.now() - told);
    nodes[i] = await start({ PORT: String(ports[i]) });
    await until(async () => (await nodes[i]!.client().request('GET', '/health/ready')).status === 200, END_MS);
    await pause(scaled(200, 2000));
  }
  over = true;
  await Promise.all(clients);
  const rate = counts.asked / ((performance.now() - startedAt) / 1000);
  t.same(codes, [0, 0, 0]);
  t.ok(slowest < END_MS, `ended within ${slowest.toFixed(0)} ms`);
  t.equal(counts.others, 0, 'each reply is a 200');
  t.ok(counts.closing > 0, 'replies said close');
  t.ok(counts.asked > 100, `${counts.asked} requests`);
  figure(t, 'T65', { did: `${NODES} nodes restarted by SIGTERM one after the other amid ${counts.asked} requests on kept sockets, ${rate.toFixed(0)} a second`, figure: `${counts.unanswered} without a reply, ${counts.others} other than 200, exit ${codes.join(', ')} within ${slowest.toFixed(0)} ms`, ok: counts.unanswered === 0 && counts.others === 0 && codes.every((code) => code === 0) && slowest < END_MS });
});
