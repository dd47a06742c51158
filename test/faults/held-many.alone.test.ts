import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import t from 'tap';
import { WRONG } from '../support/attempts.js';
import { createClient } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { until } from '../support/patience.js';

const HELD = 5_000;
const DELAY_MS = 20_000;
/** Failures per second: all are sent before the first is answered, and none waits for a thread. */
const PACE = 400;
const GOOD_PER_S = 50;
const MEASURE_MS = 6_000;
const MOST_KIB = 16;

const rank = (values: number[], share: number): number => [...values].sort((a, b) => a - b)[Math.ceil(values.length * share) - 1]!;
const rssKib = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]);

/** One login on a connection of its own or of an agent; gives the status and how long it took, in ms. */
function login(base: string, agent: Agent, email: string, password: string, i: number): Promise<{ status: number; ms: number }> {
  const started = performance.now();
  const body = JSON.stringify({ email, password });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), 'x-forwarded-for': `${20 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}.1`, 'user-agent': 'held' };
  return new Promise((resolve, reject) => {
    const call = request(`${base}/api/auth/login`, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.on('end', () => resolve({ status: response.statusCode!, ms: performance.now() - started }));
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** Starts `work` so many times a second for so long, whatever became of those before. */
async function paced<T>(perSecond: number, n: number, work: (i: number) => Promise<T>): Promise<{ all: Promise<T[]> }> {
  const began = performance.now();
  const all: Promise<T>[] = [];
  while (all.length < n) {
    const due = Math.min(n, Math.floor(((performance.now() - began) / 1000) * perSecond) + 1);
    while (all.length < due) all.push(work(all.length));
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  return { all: Promise.all(all) };
}

t.test(`${HELD} held replies cost a timer and a socket each: logins beside them are as quick as without`, { skip: scaled(1, 0) === 1 && 'in the full run: it needs the machine for a minute', timeout: 200_000 }, async (t) => {
  const { nodes, needs, account } = await startNodes(t, 1, { LOGIN_DELAYS_S: String(DELAY_MS / 1000), HASH_QUEUE_MS: '5000', LOG_LEVEL: 'info' });
  const { base, pid, opsBase } = nodes[0]!;
  const hash = await needs.hashing.hash('the password of everybody', { network: 'tests' });
  for (let from = 0; from < HELD; from += 1_000) {
    const addresses = Array.from({ length: 1_000 }, (_, i) => `held-${from + i}@example.com`);
    await needs.mysql.run(`INSERT INTO users (id, email, password_hash, email_verified_at) VALUES ${addresses.map(() => '(UUID(), ?, ?, UTC_TIMESTAMP(3))').join(', ')}`, addresses.flatMap((email) => [email, hash]));
  }
  const good = await Promise.all(Array.from({ length: 40 }, () => account()));
  const kept = new Agent({ keepAlive: true, maxSockets: 64 });
  const many = new Agent({ maxSockets: Infinity });
  t.teardown(() => [kept, many].forEach((agent) => agent.destroy()));
  const goodLogins = async (): Promise<number[]> => {
    const { all } = await paced(GOOD_PER_S, (GOOD_PER_S * MEASURE_MS) / 1000, (i) => login(base, kept, good[i % good.length]!.email, good[i % good.length]!.password, i));
    const answers = await all;
    t.same(answers.filter(({ status }) => status !== 200), []);
    return answers.map(({ ms }) => ms);
  };
  const heldNow = async (): Promise<number> => Number(/^idp_held_replies (\d+)/m.exec((await createClient(opsBase).request('GET', '/metrics')).text)?.[1] ?? 0);

  await goodLogins();
  const idle = rank(await goodLogins(), 0.99);
  const before = rssKib(pid);
  const { all } = await paced(PACE, HELD, (i) => login(base, many, `held-${i}@example.com`, WRONG, i));
  await until(async () => (await heldNow()) === HELD, 5_000).catch(() => undefined);
  const most = await heldNow();
  const kib = (rssKib(pid) - before) / most;
  const beside = rank(await goodLogins(), 0.99);
  const failures = await all;
  t.same(failures.filter(({ status }) => status !== 401), []);
  const over = failures.map(({ ms }) => ms - DELAY_MS);
  const [least, usual] = [Math.min(...over), rank(over, 0.95)];
  figure(t, 'T12', {
    did: `${HELD} failures of as many accounts held at once for ${DELAY_MS / 1000} s, ${GOOD_PER_S} good logins a second beside them`,
    figure: `${most} held, +${least.toFixed(0)} to +${usual.toFixed(0)} ms (95 %), ${kib.toFixed(1)} KiB each; p99 of good logins ${beside.toFixed(0)} ms, ${idle.toFixed(0)} ms before`,
    // A hundredth of 300 logins are three: a few ms are no finding.
    ok: most >= HELD * 0.99 && least >= 0 && usual <= 150 && kib <= MOST_KIB && beside <= Math.max(1.2 * idle, idle + 10),
  });
});
