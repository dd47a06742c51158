import t from 'tap';
import { readdirSync } from 'node:fs';
import { request as send } from 'node:http';
import { createClient } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { until } from '../support/patience.js';

const ABORTS = scaled(200, 1_000);
const AT_ONCE = 100;

const threads = (pid: number): string[] => readdirSync(`/proc/${pid}/task`).sort();

t.test('logins whose clients leave before or amid the hash cost no hashing thread', { timeout: scaled(60_000, 180_000) }, async (t) => {
  // As dear as in production, so that many wait and are left while they do.
  const { nodes, account } = await startNodes(t, 1, { ARGON2_MEMORY_KIB: '19456', ARGON2_PASSES: '2', HASH_THREADS: '2' });
  const node = nodes[0]!;
  const { email, password } = await account();
  // Threads that serve the first requests of their kind come up with them.
  for (let i = 0; i < 5; i += 1) t.equal((await node.client().login(email, password)).status, 200);
  const before = threads(node.pid);
  let answered = 0;
  const leave = (i: number): Promise<void> =>
    new Promise((resolve) => {
      const req = send(`${node.base}/api/auth/login`, { method: 'POST', agent: false, headers: { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.1' } });
      req.on('response', (res) => {
        answered += 1;
        res.resume();
      });
      req.on('error', () => undefined).once('close', () => resolve());
      req.end(JSON.stringify({ email: `gone${i}@example.com`, password: 'wrong' }));
      setTimeout(() => req.destroy(), Math.random() * 200);
    });
  for (let sent = 0; sent < ABORTS; sent += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => leave(sent + i)));
  await until(async () => /^idp_hash_pool\{what="waiting"\} 0$/m.test((await createClient(node.opsBase).request('GET', '/metrics')).text), 10_000);
  const fresh = threads(node.pid).filter((id) => !before.includes(id)).length;
  t.equal((await node.client().login(email, password)).status, 200);
  figure(t, 'T51', { did: `${ABORTS} logins over HTTP whose clients leave within 200 ms, ${AT_ONCE} at a time`, figure: `${fresh} new threads, ${answered} had their answer before`, ok: fresh === 0 && answered < ABORTS });
});
