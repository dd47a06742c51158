import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import { ownRedis } from '../support/stores.js';

const lease = 'idp:{idp:events}:relay';
const stream = 'idp:events';
const leaseMs = 10_000;
const keepMs = 60_000;
const events = [
  { type: 'identity.user.deleted', message: '{"n":1,"name":"Zoë \\u2028 \\\\ \\""}' },
  { type: 'identity.user.restored', message: '{"n":2}' },
];

async function arrange(t: Test) {
  const server = await ownRedis(t);
  const redis = createRedis(server.url, createLog('silent'));
  await redis.connect();
  t.teardown(() => redis.disconnect());
  return { redis, scripts: loadScripts(redis) };
}

t.test('of many that take the lease at once one gets it, and the others learn how long it lasts', async (t) => {
  const { redis, scripts } = await arrange(t);
  const taken = await Promise.all(Array.from({ length: 50 }, () => scripts.relayTake({ lease }, { token: randomUUID(), leaseMs })));
  t.equal(taken.filter((one) => one.taken).length, 1);
  t.ok(taken.filter((one) => !one.taken).every((one) => one.leftMs > 0 && one.leftMs <= leaseMs));
  t.ok((await redis.pttl(lease)) > 0);
});

t.test('the holder publishes on stream and channels in one step, byte for byte, and renews its lease', async (t) => {
  const { redis, scripts } = await arrange(t);
  const subscriber = redis.duplicate();
  t.teardown(() => subscriber.disconnect());
  await subscriber.connect();
  const heard: string[][] = [];
  subscriber.on('message', (channel: string, message: string) => heard.push([channel, message]));
  await subscriber.subscribe(...events.map((event) => event.type));
  await scripts.relayTake({ lease }, { token: 'mine', leaseMs: 2000 });
  t.ok(await scripts.relayPublish({ stream, lease }, { token: 'mine', leaseMs, keepMs, events }));
  await subscriber.ping();
  t.same((await redis.xrange(stream, '-', '+')).map(([, fields]) => fields), events.map((event) => ['event', event.message]));
  t.same(heard, events.map((event) => [event.type, event.message]));
  t.ok((await redis.pttl(lease)) > 2000);
});

t.test('whoever lost the lease, by time or to another, publishes nothing', async (t) => {
  const { redis, scripts } = await arrange(t);
  t.notOk(await scripts.relayPublish({ stream, lease }, { token: 'mine', leaseMs, keepMs, events }));
  await scripts.relayTake({ lease }, { token: 'other', leaseMs });
  t.notOk(await scripts.relayPublish({ stream, lease }, { token: 'mine', leaseMs, keepMs, events }));
  t.equal(await redis.exists(stream), 0);
  t.notOk(await scripts.relayRelease({ lease }, { token: 'mine', leaseMs }));
  t.equal(await redis.hget(lease, 'token'), 'other');
});

t.test('a holder that was asked to look again keeps the lease once, then releases it', async (t) => {
  const { redis, scripts } = await arrange(t);
  await scripts.relayTake({ lease }, { token: 'mine', leaseMs });
  await scripts.relayTake({ lease }, { token: 'other', leaseMs });
  await scripts.relayTake({ lease }, { token: 'third', leaseMs });
  t.ok(await scripts.relayRelease({ lease }, { token: 'mine', leaseMs }));
  t.notOk(await scripts.relayRelease({ lease }, { token: 'mine', leaseMs }));
  t.equal(await redis.exists(lease), 0);
});

t.test('publishing drops what is older than its time from the stream', async (t) => {
  const { redis, scripts } = await arrange(t);
  await scripts.relayTake({ lease }, { token: 'mine', leaseMs });
  await redis.xadd(stream, `${Date.now() - 70_000}-0`, 'event', 'old');
  await redis.xadd(stream, `${Date.now() - 50_000}-0`, 'event', 'young');
  await scripts.relayPublish({ stream, lease }, { token: 'mine', leaseMs, keepMs, events: [] });
  t.same((await redis.xrange(stream, '-', '+')).map(([, fields]) => fields[1]), ['young']);
});
