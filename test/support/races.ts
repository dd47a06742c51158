import { Agent, request } from 'node:http';
import type { Mysql } from '../../src/store/mysql.js';
import type { Node } from './nodes.js';
import type { Answer } from './client.js';
import type { Seen } from './judge.js';
import { witnessed } from './witness.js';

/** More connections than these meet the limits of the machine before those of the service. */
const MOST_AT_ONCE = 1_000;

/** Sends n POSTs at once, spread over the nodes, each from an address of its own, and up to 1,000 each on a connection of its own. */
export async function volley(nodes: Node[], n: number, path: string, bodyOf: (i: number) => unknown): Promise<Answer[]> {
  const agents = nodes.map(() => new Agent({ keepAlive: true, maxSockets: Math.ceil(Math.min(n, MOST_AT_ONCE) / nodes.length) }));
  try {
    return await Promise.all(Array.from({ length: n }, (_, i) => post(agents[i % nodes.length]!, nodes[i % nodes.length]!.base + path, bodyOf(i), i)));
  } finally {
    for (const agent of agents) agent.destroy();
  }
}

function post(agent: Agent, url: string, body: unknown, i: number): Promise<Answer> {
  const seen = new Promise<Seen>((resolve, reject) => {
    const sent = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent), 'x-forwarded-for': `198.18.${i >> 8}.${i & 255}`, 'user-agent': 'race' };
    const call = request(url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      const header = (name: string): string | null => response.headers[name.toLowerCase()]?.toString() ?? null;
      response.on('end', () => resolve({ method: 'POST', path: new URL(url).pathname, status: response.statusCode!, header, text }));
      response.on('error', reject);
    });
    call.on('error', reject);
    call.end(sent);
  });
  return seen.then((reply) => {
    witnessed(reply);
    return { status: reply.status, headers: new Headers(), body: JSON.parse(reply.text) as Record<string, unknown>, text: reply.text, setCookies: [] };
  });
}

/** Wrong guesses at an account that were verified, by the audit. */
export async function verifiedGuesses(mysql: Mysql, userId: string): Promise<number> {
  const [row] = await mysql.rows<{ n: number }>("SELECT COUNT(*) AS n FROM audit_log WHERE user_id = ? AND action = 'login' AND status = 'failure'", [userId]);
  return row!.n;
}

/**
 * For a transaction that holds what others race for: waits until statements of so many connections wait for a lock, and
 * no more come. A statement is given up after 800 ms, so it does not wait for longer than that.
 */
export async function untilCrowded(tx: Pick<Mysql, 'rows'>, atLeast: number): Promise<void> {
  let before = -1;
  for (const started = performance.now(); performance.now() - started < 500; ) {
    // MariaDB looks anew only when it was not asked for a tenth of a second.
    await new Promise((resolve) => setTimeout(resolve, 120));
    // MySQL 9 fails to show transactions whose statement holds binary values: then the wait is as long as it may be.
    const [row] = await tx.rows<{ n: unknown }>("SELECT COUNT(*) AS n FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()").catch(() => [{ n: 0 }]);
    if (Number(row!.n) >= atLeast && Number(row!.n) === before) return;
    before = Number(row!.n);
  }
}

/** Races with the newest session row held for a moment, so that nobody can rotate it before others have looked at it. */
export async function whileHeld<T>(mysql: Mysql, race: () => Promise<T>): Promise<T> {
  const outcome = await mysql.transaction(async (tx) => {
    await tx.rows('SELECT id FROM sessions ORDER BY created_at DESC, id DESC LIMIT 1 FOR UPDATE');
    const racing = race();
    await untilCrowded(tx, 2);
    return { racing };
  });
  return outcome.racing;
}
