import { spawn } from 'node:child_process';
import t, { type Test } from 'tap';
import { createDeletionValidators } from '../../../src/events/validators.js';
import { loadHandlers } from '../../../src/events/handlers.js';
import { freshDatabase, oneRedis } from '../../support/stores.js';
import { ANN, BOB, commitEvent, openNode, pause, relayOn, unpublished, until } from './node.js';

/** The examples dial one server. */
const openStores = async (t: Test) => ({ mysql: await freshDatabase(t), redis: (await oneRedis(t)).url });

/** Runs an example of the documents as it stands there, and gives the lines it prints. */
function runExample(t: Test, name: string, env: Record<string, string>): string[] {
  const lines: string[] = [];
  const child = spawn(process.execPath, [`docs/examples/${name}.mjs`], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.on('data', (chunk: Buffer) => lines.push(...chunk.toString().trim().split('\n')));
  t.teardown(() => child.kill());
  return lines;
}

t.test('the consumer catches up, then hears of deletions at once, and handles a repeat once', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls);
  const relay = relayOn(t, node);
  await commitEvent(node.mysql, ANN, 1);
  relay.wake();
  await until(async () => (await unpublished(node)) === 0);
  const lines = runExample(t, 'consumer', { REDIS_URL: urls.redis });
  await until(() => lines.length === 1);
  await pause(50);
  await commitEvent(node.mysql, BOB, 1);
  await node.mysql.run('UPDATE event_outbox SET published_at = NULL');
  relay.wake();
  await until(() => lines.length === 2);
  await pause(100);
  t.same(lines, [`clean up after ${ANN}`, `clean up after ${BOB}`]);
  t.equal(await node.redis.xlen('idp:events'), 3);
});

t.test('the deletion validator agrees or blocks in time', async (t) => {
  const urls = await openStores(t);
  const node = await openNode(t, urls, { DELETION_VALIDATORS: 'bookings:required' });
  const lines = runExample(t, 'deletion-validator', { REDIS_URL: urls.redis, BOOKED: ANN });
  await until(() => lines.includes('ready'));
  const validators = createDeletionValidators(node, await loadHandlers(node));
  t.same(await validators.ask({ userId: ANN, email: 'ann@example.com' }), { reasons: [{ source: 'bookings', reason: 'active booking' }], unavailable: [] });
  t.same(await validators.ask({ userId: BOB, email: 'bob@example.com' }), { reasons: [], unavailable: [] });
});
