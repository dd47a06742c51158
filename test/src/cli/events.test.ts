import t from 'tap';
import { testEnv } from '../../support/app.js';
import { cli } from '../../support/cli.js';
import { ANN, commitEvent, listen, openNode, openStores, relayOn, unpublished, until } from '../events/node.js';

t.test('events replay publishes again what other services missed, with the same ids', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const relay = relayOn(t, node);
  for (let n = 1; n <= 3; n += 1) await commitEvent(node.mysql, ANN, n);
  relay.wake();
  await until(async () => (await unpublished(node)) === 0);
  const stored = (await node.mysql.rows<{ id: string }>('SELECT id FROM event_outbox ORDER BY seq')).map(({ id }) => id);
  const heard: string[] = [];
  await listen(t, urls.redis, (text) => heard.push((JSON.parse(text) as { id: string }).id));

  const run = cli(testEnv(urls.mysql, urls.redis));
  t.match(await run('events', 'replay', '--since', '1h'), { code: 0, out: 'published 3 events again\n', err: '' });
  await until(() => heard.length === 3);
  t.same(heard, stored);
  const { out } = await run('events', 'replay', '--since', '2999-01-01T00:00:00Z', '--json');
  t.strictSame(JSON.parse(out), { published: 0, since: '2999-01-01T00:00:00.000Z' });
});
