import t from 'tap';
import { startApp } from '../../support/app.js';
import { createClient, type Answer } from '../../support/client.js';
import { until } from '../../support/patience.js';

const { app, client, account } = await startApp(t, { HASH_THREADS: '1', HASH_QUEUE_MS: '60000' });
const ops = createClient(`http://127.0.0.1:${app.opsPort}`);
const put = (body: unknown): Promise<Answer> => ops.request('PUT', '/pool', { body });
const threadsNow = async (): Promise<unknown> => (await ops.request('GET', '/pool')).body['threads'];

t.test('the pool is resized while logins are under way, and none of them is lost', async (t) => {
  const accounts = await Promise.all([1, 2, 3, 4].map(() => account()));
  let isOn = true;
  const statuses: Record<number, number> = {};
  const lines = Array.from({ length: 16 }, async (_, n) => {
    const { email, password } = accounts[n % 4]!;
    while (isOn) {
      const { status } = await client().login(email, password);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  });
  for (const threads of [4, 2, 1, 3]) {
    t.match(await put({ threads }), { status: 200, body: { threads } });
    await until(async () => (await ops.request('GET', '/pool')).body['alive'] === threads);
    t.equal(await threadsNow(), threads);
  }
  isOn = false;
  await Promise.all(lines);
  t.same(Object.keys(statuses), ['200'], JSON.stringify(statuses));
  t.match(await ops.request('GET', '/pool'), { body: { threads: 3, ending: 0, running: 0, waiting: 0 } });
});

t.test('what is no size is refused with the reason, and the pool stays as it is', async (t) => {
  await put({ threads: 2 });
  for (const threads of [0, -1, 257, 1.5, '4', null, [4], true]) {
    const refused = await put({ threads });
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST', errors: [{ path: '/threads', message: /^must be / }] } }, JSON.stringify(threads));
  }
  for (const body of [{}, { thread: 4 }]) t.match(await put(body), { status: 400, body: { errors: [{ path: '/threads', message: 'is required' }] } });
  t.match(await ops.request('PUT', '/pool', { raw: '{"threads":', headers: { 'content-type': 'application/json' } }), { status: 400, body: { code: 'INVALID_REQUEST' } });
  t.match(await ops.request('PUT', '/pool', { raw: '{"threads":4}', headers: { 'content-type': 'text/plain' } }), { status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } }, 'which a page of another origin could send unasked');
  t.match(await ops.request('POST', '/pool', { body: { threads: 4 } }), { status: 405, body: { code: 'METHOD_NOT_ALLOWED' } });
  t.equal(await threadsNow(), 2);
});

t.test('the public listener knows nothing of it', async (t) => {
  t.match(await client().request('PUT', '/pool', { body: { threads: 4 } }), { status: 404, body: { code: 'NOT_FOUND' } });
  t.equal(await threadsNow(), 2);
});
