import t from 'tap';
import { loadHandlers } from '../../../src/events/handlers.js';
import { startRelay, type Relay } from '../../../src/events/relay.js';
import { appendEvent, forgetEvents } from '../../../src/store/outbox.js';
import { ANN, BOB, commitEvent, disorder, listen, NO_HANDLERS, openNode, openStores, pause, relayOn, streamed, unpublished, until, USERS, type Deleted, type Node } from './node.js';
import { figure, scaled } from '../../support/figures.js';
import { atMost } from '../../support/patience.js';

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

t.test('an event goes out on the channel of its type and on the stream, with the text of the outbox', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const heard: { channel: string; text: string }[] = [];
  await listen(t, urls.redis, (text, channel) => heard.push({ channel, text }));
  const relay = relayOn(t, node);
  const id = await commitEvent(node.mysql, ANN, 30);
  relay.wake();
  await until(() => heard.length === 1);
  await until(async () => (await unpublished(node)) === 0);
  const [row] = await node.mysql.rows<{ message: string }>('SELECT message FROM event_outbox');
  t.same(heard, [{ channel: 'identity.user.deleted', text: row!.message }]);
  t.same(await streamed(node.redis), [JSON.parse(row!.message)]);
  t.match(JSON.parse(row!.message), { id, type: 'identity.user.deleted', time: /Z$/, userId: ANN, gracePeriodDays: 30 });
});

t.test('nothing goes out before the commit, nor after a rollback', async (t) => {
  const node = await openNode(t, await openStores(t));
  const relay = relayOn(t, node);
  await node.mysql
    .transaction(async (tx) => {
      await appendEvent(tx, 'identity.session.reuse_detected', { userId: ANN, sessionId: ANN }, new Date());
      relay.wake();
      await pause(50);
      t.same(await streamed(node.redis), []);
      throw new Error('rolled back');
    })
    .catch(() => undefined);
  relay.wake();
  await pause(50);
  t.same(await streamed(node.redis), []);
});

t.test('three relays at once keep the order of each user, and a repeat has the same id', async (t) => {
  const urls = await openStores(t);
  const nodes = await Promise.all([1, 2, 3].map(() => openNode(t, urls)));
  const relays = nodes.map((node) => relayOn(t, node));
  await Promise.all(
    USERS.map(async (user, index) => {
      for (let n = 1; n <= 300; n += 1) {
        await commitEvent(nodes[(n + index) % 3]!.mysql, user, n);
        for (const relay of relays) relay.wake();
      }
    }),
  );
  await until(async () => (await unpublished(nodes[0]!)) === 0);
  const messages = await streamed(nodes[0]!.redis);
  t.same(disorder(messages), []);
  t.equal(new Set(messages.map((message) => message.id)).size, 900);
});

t.test('without any subscriber the stream holds every event once', async (t) => {
  const node = await openNode(t, await openStores(t));
  for (let n = 1; n <= 300; n += 1) await commitEvent(node.mysql, ANN, n);
  relayOn(t, node);
  await until(async () => (await unpublished(node)) === 0);
  const messages = await streamed(node.redis);
  t.same(messages.map((message) => message.gracePeriodDays), Array.from({ length: 300 }, (_, index) => index + 1));
  const ids = new Set(messages.map((message) => message.id)).size;
  figure(t, 'T63', { did: '300 events with no subscriber', figure: `${messages.length} on the stream, ${ids} ids`, ok: messages.length === 300 && ids === 300 });
});

t.test('a subscriber hears of a commit within 50 ms on every node, also while another node relays', async (t) => {
  const urls = await openStores(t);
  const [idle, busy] = [await openNode(t, urls), await openNode(t, urls)];
  const relays = { idle: relayOn(t, idle), busy: relayOn(t, busy) };
  const heardAt = new Map<string, number>();
  await listen(t, urls.redis, (text) => heardAt.set((JSON.parse(text) as Deleted).id, performance.now()));

  async function measure(node: Node, relay: Relay, user: string): Promise<number> {
    const took: number[] = [];
    for (let n = 1; n <= 40; n += 1) {
      const id = await commitEvent(node.mysql, user, n);
      const committed = performance.now();
      relay.wake();
      await until(() => heardAt.has(id));
      took.push(heardAt.get(id)! - committed);
    }
    return median(took);
  }

  const alone = await measure(idle, relays.idle, ANN);
  let stop = false;
  const load = (async () => {
    for (let n = 1; !stop; n += 1) {
      await commitEvent(busy.mysql, BOB, n);
      relays.busy.wake();
    }
  })();
  const beside = await measure(idle, relays.idle, USERS[2]!);
  stop = true;
  await load;
  t.comment(`median: ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside a busy node`);
  t.ok(alone < scaled(250, 50));
  t.ok(beside < scaled(250, 50));
});

t.test('closing publishes what was committed just before', async (t) => {
  const node = await openNode(t, await openStores(t));
  const relay = startRelay(node, NO_HANDLERS);
  await pause(100);
  await commitEvent(node.mysql, ANN, 1);
  await relay.close();
  t.equal(await node.redis.xlen('idp:events'), 1);
  t.equal(await unpublished(node), 0);
});

t.test('stream and outbox drop what is older than EVENTS_KEEP_DAYS, also when nothing new comes', async (t) => {
  const node = await openNode(t, await openStores(t), { EVENTS_KEEP_DAYS: '0.00001' });
  await commitEvent(node.mysql, ANN, 1);
  relayOn(t, node);
  await until(async () => (await node.redis.xlen('idp:events')) === 1);
  await until(async () => (await node.redis.xlen('idp:events')) === 0 && (await node.mysql.rows('SELECT seq FROM event_outbox')).length === 0);
  t.equal(await node.redis.pttl('idp:events'), -1);
});

t.test('with the last event of a purged account its rows go, and nobody else’s', async (t) => {
  const node = await openNode(t, await openStores(t));
  const gone = { userId: ANN, email: 'ann@example.com', originalDeletionAt: new Date(0).toISOString(), daysInDeletedState: 30 };
  for (const user of [ANN, BOB]) await commitEvent(node.mysql, user, 1);
  await node.mysql.transaction((tx) => appendEvent(tx, 'identity.user.permanently_deleted', gone, new Date()));
  relayOn(t, node);
  await until(async () => (await node.redis.xlen('idp:events')) === 3);
  await until(async () => (await unpublished(node)) === 0);
  t.same(await node.mysql.rows('SELECT user_id FROM event_outbox'), [{ user_id: BOB }]);
});

t.test('forgetting an account removes its published events and leaves what is still to be published', async (t) => {
  const node = await openNode(t, await openStores(t));
  for (const n of [1, 2]) await commitEvent(node.mysql, ANN, n);
  await commitEvent(node.mysql, BOB, 1);
  await node.mysql.run('UPDATE event_outbox SET published_at = UTC_TIMESTAMP(3) WHERE seq <> 2');
  await node.mysql.transaction((tx) => forgetEvents(tx, ANN));
  t.same(await node.mysql.rows('SELECT user_id, seq FROM event_outbox ORDER BY seq'), [
    { user_id: ANN, seq: 2 },
    { user_id: BOB, seq: 3 },
  ]);
});

t.test('a slow handler holds neither the relay nor its lease', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls, { IDENTITY_HANDLERS: 'test/src/events/modules/slow.mjs' });
  const relay = relayOn(t, node, await loadHandlers(node));
  for (let n = 1; n <= 3; n += 1) {
    const committed = performance.now();
    await commitEvent(node.mysql, ANN, n);
    relay.wake();
    await until(async () => (await unpublished(node)) === 0);
    t.ok(performance.now() - committed < atMost(800));
  }
  t.equal(await node.redis.xlen('idp:events'), 3);
});
