import t from 'tap';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import { ownRedis } from '../support/stores.js';

t.test('a question opens its list of answers with a TTL, and goes out', async (t) => {
  const redis = createRedis((await ownRedis(t)).url, createLog('silent'));
  const subscriber = redis.duplicate();
  t.teardown(() => [redis, subscriber].forEach((client) => client.disconnect()));
  await Promise.all([redis.connect(), subscriber.connect()]);
  const heard = new Promise((resolve) => subscriber.once('message', (channel, message) => resolve([channel, message])));
  await subscriber.subscribe('a.channel');
  t.ok(await loadScripts(redis).deletionAsk({ answers: 'idp:{v}:answers' }, { keepMs: 5000, channel: 'a.channel', message: 'hello' }));
  t.same(await heard, ['a.channel', 'hello']);
  t.same(await redis.lrange('idp:{v}:answers', 0, -1), ['']);
  t.ok((await redis.pttl('idp:{v}:answers')) > 4000);
});
