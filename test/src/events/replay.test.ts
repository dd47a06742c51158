import t from 'tap';
import { readSince, replay, type ReplayProgress } from '../../../src/events/replay.js';
import { appendEvent } from '../../../src/store/outbox.js';
import { ANN, BOB, commitEvent, disorder, listen, openNode, openStores, pause, relayOn, streamed, unpublished, until, type Deleted } from './node.js';

t.test('a replay repeats the events since a time, with the same text, in order, and counts them', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const relay = relayOn(t, node);
  await commitEvent(node.mysql, ANN, 1);
  await pause(20);
  const since = new Date(node.clock.now());
  await pause(20);
  for (let n = 2; n <= 151; n += 1) for (const user of [ANN, BOB]) await commitEvent(node.mysql, user, n);
  relay.wake();
  await until(async () => (await unpublished(node)) === 0);
  const first = (await streamed(node.redis)).filter((message) => message.gracePeriodDays > 1);
  const heard: string[] = [];
  await listen(t, urls.redis, (text) => heard.push(text));

  const progress: ReplayProgress[] = [];
  t.equal(await replay(node, since, (done) => progress.push(done)), 300);
  await until(() => heard.length === 300);
  t.same(heard.map((text) => JSON.parse(text) as Deleted), first);
  t.same((await streamed(node.redis)).slice(-300), first);
  t.same(progress.at(-1), { published: 300, share: 1 });
  t.ok(progress.every((done, index) => index === 0 || done.share >= progress[index - 1]!.share));
});

t.test('a replay leaves what was never published to the relay', async (t) => {
  const node = await openNode(t, await openStores(t));
  await commitEvent(node.mysql, ANN, 1);
  t.equal(await replay(node, new Date(0)), 0);
  t.equal(await unpublished(node), 1);
});

t.test('events are published in order while a replay runs', async (t) => {
  const node = await openNode(t, await openStores(t));
  const relay = relayOn(t, node);
  for (let n = 1; n <= 200; n += 1) await commitEvent(node.mysql, ANN, n);
  relay.wake();
  await until(async () => (await unpublished(node)) === 0);
  const replaying = replay(node, new Date(0));
  for (let n = 1; n <= 50; n += 1) {
    await commitEvent(node.mysql, BOB, n);
    relay.wake();
  }
  await replaying;
  await until(async () => (await unpublished(node)) === 0);
  t.same(disorder(await streamed(node.redis)), []);
});

t.test('events of a purged account are repeated on their channels, and its messages are not put on the stream again', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const relay = relayOn(t, node);
  await commitEvent(node.mysql, ANN, 1);
  await commitEvent(node.mysql, BOB, 1);
  await node.mysql.transaction((tx) => appendEvent(tx, 'identity.user.permanently_deleted', { userId: ANN, email: 'ann@example.com', originalDeletionAt: new Date(0).toISOString(), daysInDeletedState: 30 }, new Date()));
  relay.wake();
  await until(async () => (await unpublished(node)) === 0);
  const heard: Deleted[] = [];
  await listen(t, urls.redis, (text) => heard.push(JSON.parse(text) as Deleted));

  t.equal(await replay(node, new Date(Date.now() - 60_000)), 3);
  await until(() => heard.length === 3);
  t.same(heard.filter((event) => event.userId === ANN).map((event) => event.type), ['identity.user.deleted', 'identity.user.permanently_deleted']);
  t.equal((await streamed(node.redis)).filter((event) => event.userId === ANN).length, 2);
  t.equal((await streamed(node.redis)).filter((event) => event.userId === BOB).length, 2);
});

t.test('a replay of nothing publishes nothing', async (t) => {
  const node = await openNode(t, await openStores(t));
  const progress: ReplayProgress[] = [];
  t.equal(await replay(node, new Date(), (done) => progress.push(done)), 0);
  t.same(progress, [{ published: 0, share: 1 }]);
});

t.test('since is a time or a duration', (t) => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  t.same(readSince('2026-02-28T00:00:00Z', now), new Date('2026-02-28T00:00:00Z'));
  t.same(readSince('90s', now), new Date(now - 90_000));
  t.same(readSince('24h', now), new Date('2026-02-28T12:00:00Z'));
  t.same(readSince('7d', now), new Date('2026-02-22T12:00:00Z'));
  for (const wrong of ['', 'yesterday', '7', '-1d', '1w', '2026-99-01']) t.throws(() => readSince(wrong, now), /a time such as/, wrong);
  t.end();
});
