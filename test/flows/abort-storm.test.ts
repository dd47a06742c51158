import t from 'tap';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createDocument } from '../../src/openapi/document.js';
import { PUBLIC_ROUTES } from '../../src/routes.js';
import { dial } from '../support/cluster.js';
import { createClient, type Issued } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { until } from '../support/patience.js';
import { bodyOf, isForUsers, probesOf, target } from '../support/probes.js';
import { request } from '../support/raw.js';

const threads = (pid: number): string[] => readdirSync(`/proc/${pid}/task`).sort();
const residentMiB = (pid: number): number => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
const JSON_TYPE = 'Content-Type: application/json';
const AT_ONCE = 200;
/** Requests, and as many before them: what caches, code and stacks take once is taken then. */
const [REQUESTS, WARM_UP] = [scaled(3_000, 100_000), scaled(1_000, 20_000)];
/** How much more memory may be in use afterwards: in the short run what is taken once is a large part. */
const MORE = scaled(0.5, 0.05);

/** Sends bytes and resets the socket at a moment of its own, perhaps amid them. */
const stab = (port: number, bytes: string): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      const cut = Math.random() < 0.5 ? bytes.length : Math.ceil(Math.random() * bytes.length);
      socket.write(bytes.slice(0, cut));
      const reset = setTimeout(() => (socket.readyState === 'open' ? socket.resetAndDestroy() : socket.destroy()), Math.random() * 50);
      // The rest comes while the first part is being looked at.
      if (cut < bytes.length) setImmediate(() => socket.writable && socket.write(bytes.slice(cut, Math.ceil((cut + bytes.length) / 2))));
      socket.once('close', () => clearTimeout(reset));
    });
    socket.on('error', () => undefined).once('close', () => resolve());
  });

t.test('requests to every endpoint cut off at any moment end nothing and leave nothing behind', { timeout: scaled(90_000, 460_000) }, async (t) => {
  const { nodes, account, redis } = await startNodes(t, 1, { LOGIN_DELAYS_S: '0.03', LIMIT_OAUTH: '0' });
  const node = nodes[0]!;
  const port = Number(new URL(node.base).port);
  const { email, password } = await account();
  const victim = await account();
  const probes = probesOf(createDocument(PUBLIC_ROUTES));
  let issued: Issued;

  const whole = (i: number): string => {
    const probe = probes[i % probes.length]!;
    // An address of nobody now and then: a guess that is reserved, hashed and counted.
    const truth = { email: i % 3 ? victim.email : `nobody${i}@example.com`, password: victim.password, currentPassword: victim.password, refreshToken: issued.refreshToken };
    const body = bodyOf(probe, truth);
    const headers = [...(isForUsers(probe) ? [`Authorization: Bearer ${issued.accessToken}`] : []), ...(body ? [JSON_TYPE] : [])];
    return request(`${probe.method} ${target(probe)}`, headers, body && JSON.stringify(body));
  };
  const ODD = [
    () => request('POST /api/auth/login', [JSON_TYPE, 'Content-Length: 9000'], '{"email":'),
    () => request('POST /api/auth/login', [JSON_TYPE], 'x'.repeat(30_000)),
    () => request('POST /api/auth/refresh', [JSON_TYPE, 'Transfer-Encoding: chunked']) + 'ff\r\n{"refreshToken":',
    () => request('GET /health/ready') + request('GET /health/ready'),
  ];
  let sent = 0;
  async function storm(count: number): Promise<void> {
    for (const end = sent + count; sent < end; ) {
      // Logouts and password changes among them end the session.
      if (sent % 5_000 < AT_ONCE) issued = (await node.client().login(victim.email, victim.password)).body as unknown as Issued;
      await Promise.all(Array.from({ length: AT_ONCE }, () => ((sent += 1), stab(port, sent % 5 === 0 ? ODD[(sent / 5) % ODD.length]!() : whole(sent)))));
    }
  }
  const metric = async (name: string): Promise<number> => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await createClient(node.opsBase).request('GET', '/metrics')).text)?.[1]);
  const isCalm = async (): Promise<boolean> => (await metric('idp_held_replies')) === 0 && (await metric('idp_hash_pool\\{what="waiting"\\}')) === 0 && (await metric('idp_hash_pool\\{what="running"\\}')) === 0;
  // A request that fails is logged as such. Stores that answer late on a machine at its end are not what is looked at here.
  const errors = (): string[] => node.output().match(/^.*("level":"fatal"|"msg":"request failed").*$/gm) ?? [];

  await storm(WARM_UP);
  await until(isCalm);
  const [before, memory, atStart] = [threads(node.pid), residentMiB(node.pid), errors().length];
  await storm(REQUESTS);
  await until(isCalm);

  t.equal((await node.client().login(email, password)).status, 200, 'the service goes on');
  t.same(threads(node.pid), before, 'in the same threads');
  const store = dial(redis.url);
  const kept = (await store.keys('idp:*:held:*')).length;
  store.disconnect();
  t.equal(kept, 0, 'no guess is still reserved');
  t.same(errors().slice(atStart), [], 'and no request failed by a fault of ours');
  // What was thrown away last is collected when the service has time for it, or needs room.
  await until(async () => (await node.client().request('GET', '/health/ready'), residentMiB(node.pid) <= memory * (1 + MORE)), 30_000).catch(() => undefined);
  const after = residentMiB(node.pid);
  const logged = errors().length - atStart;
  figure(t, 'T50', {
    did: `${REQUESTS} requests to ${probes.length} endpoints, whole or in part, reset at random within 50 ms, after ${WARM_UP} like them`,
    figure: `0 exits, the same ${before.length} threads, no ticket, held reply or place in a queue kept, ${logged} requests failed; memory ${memory.toFixed(0)} MiB before, ${after.toFixed(0)} after`,
    ok: threads(node.pid).join() === before.join() && logged === 0 && kept === 0 && after <= memory * (1 + MORE),
  });
});
