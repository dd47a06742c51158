import t from 'tap';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { until } from '../support/patience.js';
import { request } from '../support/raw.js';

const threads = (pid: number): number => readdirSync(`/proc/${pid}/task`).length;

/** Sends a request and resets the socket at a moment of its own. */
const stab = (port: number, bytes: string): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes);
      setTimeout(() => (socket.readyState === 'open' ? socket.resetAndDestroy() : socket.destroy()), Math.random() * 50);
    });
    socket.on('error', () => undefined).once('close', () => resolve());
  });

t.test('thousands of requests cut off at any moment end nothing and leave nothing behind', { timeout: scaled(60_000, 180_000) }, async (t) => {
  const { nodes, account } = await startNodes(t, 1, { LOGIN_DELAYS_S: '0.03' });
  const node = nodes[0]!;
  const port = Number(new URL(node.base).port);
  const { email, password } = await account();
  const token = (await node.client().login(email, password)).body['accessToken'] as string;
  const json = 'Content-Type: application/json';
  const kinds = [
    () => request('GET /api/auth/profile', [`Authorization: Bearer ${token}`]),
    () => request('POST /api/auth/login', [json], JSON.stringify({ email: `nobody${Math.random()}@example.com`, password: 'wrong' })),
    () => request('POST /api/auth/login', [json, 'Content-Length: 9000'], '{"email":'),
    () => request('POST /api/auth/refresh', [json], '{"refreshToken":"x"}'),
    () => request('POST /api/auth/login', [json], 'x'.repeat(30_000)),
    () => request('GET /health/ready') + request('GET /health/ready'),
  ];
  const errors = (): string[] => node.output().match(/^.*"level":"(error|fatal)".*$/gm) ?? [];
  const [before, atStart] = [threads(node.pid), errors().length];
  const rounds = scaled(15, 75);
  for (let round = 0; round < rounds; round += 1) await Promise.all(Array.from({ length: 200 }, (_, i) => stab(port, kinds[i % kinds.length]!())));
  await pause(500);

  t.match(await node.client().profile(token), { status: 200, body: { email } });
  t.equal((await node.client().login(email, password)).status, 200);
  const after = threads(node.pid);
  t.equal(after, before, 'as many threads as before');
  const metrics = async (): Promise<string> => (await createClient(node.opsBase).request('GET', '/metrics')).text;
  // No reply is held for anybody, and nothing waits.
  await until(async () => [/^idp_held_replies 0$/m, /^idp_hash_pool\{what="waiting"\} 0$/m].every(((text) => (line: RegExp) => line.test(text))(await metrics())));
  const logged = errors().slice(atStart);
  t.same(logged, [], 'and no error in the log');
  figure(t, 'T50', { did: `${rounds * 200} requests reset at random within 50 ms`, figure: `still serving, ${before} threads before and ${after} after, nothing held, ${logged.length} errors logged`, ok: after === before && logged.length === 0 });
});
