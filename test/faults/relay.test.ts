// Mostly waits.

import { spawn } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createConnection } from 'mysql2/promise';
import t from 'tap';
import { ANN, commitEvent, disorder, openNode, openStores, pause, relayOn, streamed, unpublished, until, USERS, type Node } from '../src/events/node.js';
import { figure, scaled } from '../support/figures.js';
import { atMost } from '../support/patience.js';
import { brokenBuild } from '../support/racy.js';
import { ownRedis } from '../support/stores.js';

t.test('an event whose node died before it could wake its relay is published by another within about a second', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  relayOn(t, await openNode(t, urls));
  await pause(50);
  await commitEvent(node.mysql, ANN, 1);
  const took = await until(async () => (await node.redis.xlen('idp:events')) === 1);
  t.ok(took < atMost(1300), `${took} ms`);
});

t.test('a relay that died with the lease is succeeded within about a second', async (t) => {
  const node = await openNode(t, await openStores(t));
  await node.scripts.relayTake({ lease: 'idp:{idp:events}:relay' }, { token: 'dead', leaseMs: 1000 });
  await commitEvent(node.mysql, ANN, 1);
  const started = performance.now();
  relayOn(t, node);
  await until(async () => (await node.redis.xlen('idp:events')) === 1);
  const took = performance.now() - started;
  t.ok(took > 500 && took < atMost(1300), `${took} ms`);
});

t.test('when an event was published but could not be marked, it is repeated with the same id', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  await commitEvent(node.mysql, ANN, 1);
  const holder = await createConnection({ uri: urls.mysql });
  t.teardown(() => holder.end());
  await holder.query('START TRANSACTION');
  await holder.query('SELECT seq FROM event_outbox FOR UPDATE');
  relayOn(t, node);
  await until(async () => (await node.redis.xlen('idp:events')) >= 2);
  await holder.query('ROLLBACK');
  await until(async () => (await unpublished(node)) === 0);
  const messages = await streamed(node.redis);
  t.ok(messages.length >= 2);
  t.equal(new Set(messages.map((message) => JSON.stringify(message))).size, 1);
});

t.test('while Redis is away events wait, and all go out once it is back', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const relay = relayOn(t, node);
  await urls.server.stop();
  for (let n = 1; n <= 200; n += 1) {
    await commitEvent(node.mysql, ANN, n);
    relay.wake();
  }
  await pause(300);
  t.equal(await unpublished(node), 200);
  const back = await ownRedis(t, [], urls.server.port);
  const took = await until(async () => (await unpublished(node)) === 0, atMost(5000));
  t.ok(took < atMost(5000), `${took} ms`);
  const reader = await openNode(t, { mysql: urls.mysql, redis: back.url });
  const messages = await streamed(reader.redis);
  t.same(disorder(messages), []);
  const ids = new Set(messages.map((message) => message.id)).size;
  t.equal(ids, 200);
  figure(t, 'T63', { did: '200 events while Redis is stopped, then a new one without data, nobody subscribed', figure: `${ids} ids on the stream`, ok: ids === 200 });
});

t.test('while Redis hangs events wait, and what it executes late disturbs no order', async (t) => {
  const urls = await openStores(t);
  const nodes = [await openNode(t, urls), await openNode(t, urls)];
  const relays = nodes.map((node) => relayOn(t, node));
  let stop = false;
  let n = 0;
  const load = (async () => {
    while (!stop) {
      n += 1;
      await commitEvent(nodes[n % 2]!.mysql, ANN, n);
      for (const relay of relays) relay.wake();
    }
  })();
  await pause(100);
  process.kill(urls.server.pid, 'SIGSTOP');
  await pause(1500);
  process.kill(urls.server.pid, 'SIGCONT');
  await pause(200);
  stop = true;
  await load;
  await until(async () => (await unpublished(nodes[0]!)) === 0);
  const messages = await streamed(nodes[0]!.redis);
  t.same(disorder(messages), []);
  t.equal(new Set(messages.map((message) => message.id)).size, n);
});

/** How often the next test kills a relay; more by hand. */
const KILLS = Number(process.env.KILLS ?? scaled(5, 200));

async function startChild(urls: { mysql: string; redis: string }, build: { RELAY?: string } = {}) {
  const child = spawn(process.execPath, [fileURLToPath(new URL('relay-child.js', import.meta.url))], {
    env: { ...process.env, MYSQL_URL: urls.mysql, REDIS_URL: urls.redis, ...build },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

async function commitMany(node: Node, from: number, to: number): Promise<void> {
  await Promise.all(
    USERS.map(async (user) => {
      for (let n = from; n <= to; n += 1) await commitEvent(node.mysql, user, n);
    }),
  );
}

t.test(`a relay killed ${KILLS} times in the middle of its work loses nothing, and repeats under the same ids`, { timeout: 30_000 + KILLS * 10_000 }, async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const PER_ROUND = 60;
  for (let round = 0; round < KILLS; round += 1) {
    const before = await node.redis.xlen('idp:events');
    await commitMany(node, round * PER_ROUND + 1, (round + 1) * PER_ROUND);
    const child = await startChild(urls);
    await until(async () => (await node.redis.xlen('idp:events')) > before);
    await pause(Math.random() * 4);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  relayOn(t, node);
  await until(async () => (await unpublished(node)) === 0);
  const messages = await streamed(node.redis);
  t.same(disorder(messages), []);
  const ids = new Set(messages.map((message) => message.id)).size;
  const all = KILLS * PER_ROUND * USERS.length;
  t.equal(ids, all);
  figure(t, 'T35', { did: `${all} events, the relay killed with -9 ${KILLS} times`, figure: `${all - ids} lost, ${messages.length - ids} repeats under the same ids, ${disorder(messages).length} out of order`, ok: ids === all && disorder(messages).length === 0 });
});

t.test('a relay that notes events before it publishes them loses some when it is killed: the race is one', async (t) => {
  const first = 'await settlePublished(needs.mysql, events); await new Promise((resolve) => setTimeout(resolve, 200));';
  const main = brokenBuild(t, 'dist/src/events/relay.js', 'if (!(await publishEvents(needs, token, events)))', `${first} if (!(await publishEvents(needs, token, events)))`);
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  await commitMany(node, 1, 5);
  const child = await startChild(urls, { RELAY: new URL('events/relay.js', pathToFileURL(main)).href });
  await until(async () => (await unpublished(node)) < 5 * USERS.length);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  relayOn(t, node);
  await until(async () => (await unpublished(node)) === 0);
  const ids = new Set((await streamed(node.redis)).map(({ id }) => id)).size;
  t.ok(ids < 5 * USERS.length, `${5 * USERS.length - ids} lost`);
});

t.test('a relay frozen past its lease publishes nothing behind its successor', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  await commitMany(node, 1, 400);
  const child = await startChild(urls);
  t.teardown(() => child.kill('SIGKILL'));
  await until(async () => (await node.redis.xlen('idp:events')) > 0);
  child.kill('SIGSTOP');
  const relay = relayOn(t, node);
  await until(async () => (await unpublished(node)) === 0);
  child.kill('SIGCONT');
  await commitMany(node, 401, 420);
  relay.wake();
  await until(async () => (await unpublished(node)) === 0);
  const messages = await streamed(node.redis);
  t.same(disorder(messages), []);
  t.equal(new Set(messages.map((message) => message.id)).size, 420 * USERS.length);
});
