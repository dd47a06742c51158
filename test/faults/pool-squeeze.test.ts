import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { createClient } from '../support/client.js';
import { figure } from '../support/figures.js';
import { startNodes, type Node } from '../support/nodes.js';
import { atMost } from '../support/patience.js';

/** Bounds the addresses that a running process may have; null: no bound. */
const bound = (pid: number, bytes: number | null): Buffer => execFileSync('prlimit', ['--pid', String(pid), `--as=${bytes ?? 'unlimited'}:`]);
const addressesOf = ({ pid }: Node): number => Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[0]) * 4096;

async function msUntil(condition: () => Promise<boolean>, patienceMs: number): Promise<number> {
  const started = performance.now();
  while (!(await condition()) && performance.now() - started < patienceMs) await new Promise((resolve) => setTimeout(resolve, 50));
  return performance.now() - started;
}

t.test('threads that there is no room for do not end the service: it serves with those it has, and has all once there is room', { timeout: 60_000 }, async (t) => {
  const { nodes, account } = await startNodes(t, 1, { HASH_THREADS: '2' });
  const node = nodes[0]!;
  const ops = createClient(node.opsBase);
  const { email, password } = await account();
  const alive = async (): Promise<unknown> => (await ops.request('GET', '/pool')).body['alive'];
  t.equal((await node.client().login(email, password)).status, 200);
  await msUntil(async () => (await alive()) === 2, 10_000);

  let slowest = 0;
  for (const spare of [16, 300]) {
    bound(node.pid, addressesOf(node) + spare * 2 ** 20);
    t.match(await ops.request('PUT', '/pool', { body: { threads: 5 } }), { status: 200, body: { threads: 5, alive: 2 } });
    await new Promise((resolve) => setTimeout(resolve, 700));
    t.equal((await node.client().login(email, password)).status, 200, `with ${spare} MiB of addresses left`);
    t.ok(Number(await alive()) < 5);
    bound(node.pid, null);
    const ms = await msUntil(async () => (await alive()) === 5, 30_000);
    t.ok(ms < atMost(5000), `all there after ${ms.toFixed(0)} ms`);
    slowest = Math.max(slowest, ms);
    await ops.request('PUT', '/pool', { body: { threads: 2 } });
    await msUntil(async () => (await alive()) === 2, 10_000);
  }
  t.match(node.output(), /"msg":"a worker thread cannot start: tried again until it can"/);
  t.match(node.output(), /address space/);
  figure(t, 'T52', { did: 'prlimit --as while threads start, released again', figure: `logins served meanwhile; full size after ${slowest.toFixed(0)} ms of 5,000 at most`, ok: slowest < atMost(5_000) });
});
