import t from 'tap';
import { loadHandlers } from '../../../src/events/handlers.js';
import { createLog } from '../../../src/log.js';
import { ANN, BOB, commitEvent, openNode, openStores, relayOn, unpublished, until, type Deleted } from './node.js';
import { atMost } from '../../support/patience.js';

const log = createLog('silent');
const load = (...names: string[]) => loadHandlers({ log, config: { identityHandlers: names.map((name) => `test/src/events/modules/${name}.mjs`) } as never });
const question = { userId: ANN, email: 'ann@example.com' };

t.test('every reason of every handler is kept', async (t) => {
  const handlers = await load('blocks-twice', 'agrees');
  t.same(await handlers.validate(question, 2000), {
    reasons: [
      { source: 'bookings', reason: `active booking of ${ANN}` },
      { source: 'billing', reason: 'open invoice of ann@example.com' },
    ],
    unavailable: [],
  });
});

t.test('a handler that throws is unavailable, and its reasons up to then count', async (t) => {
  const handlers = await load('throws', 'blocks-twice');
  const { reasons, unavailable } = await handlers.validate(question, 2000);
  t.same(unavailable, ['test/src/events/modules/throws.mjs']);
  t.same(reasons.map((reason) => reason.source), ['stock', 'bookings', 'billing']);
});

t.test('a handler that hangs is unavailable at the deadline, and what it says later is ignored', async (t) => {
  const handlers = await load('hangs');
  const started = performance.now();
  t.same(await handlers.validate(question, 200), { reasons: [], unavailable: ['test/src/events/modules/hangs.mjs'] });
  t.ok(performance.now() - started < atMost(400));
});

t.test('a reason that is not text makes its handler unavailable', async (t) => {
  t.same(await (await load('careless')).validate(question, 2000), { reasons: [], unavailable: ['test/src/events/modules/careless.mjs'] });
});

t.test('without handlers nobody objects', async (t) => {
  t.same(await (await load()).validate(question, 2000), { reasons: [], unavailable: [] });
});

t.test('a module that cannot be used stops the start and is named', async (t) => {
  for (const [name, why] of [
    ['missing', /cannot be loaded/],
    ['broken', /cannot be loaded: broken while it was loaded/],
    ['no-function', /does not export a function by default/],
    ['unknown-event', /failed at start: there is no event identity\.user\.renamed; there are identity\.user\./],
  ] as const) {
    await t.rejects(load(name), { message: new RegExp(`^IDENTITY_HANDLERS: test/src/events/modules/${name}\\.mjs ${why.source}`) });
  }
});

t.test('published events reach the handlers in order, each with its own copy, beside one that throws', async (t) => {
  const urls = await openStores(t);
  const names = ['throws', 'records', 'records'];
  const node = await openNode(t, urls, { IDENTITY_HANDLERS: names.map((name) => `test/src/events/modules/${name}.mjs`).join(', ') });
  const handlers = await loadHandlers(node);
  for (const n of [1, 2, 3]) await commitEvent(node.mysql, BOB, n);
  const relay = relayOn(t, node, handlers);
  await until(async () => (await unpublished(node)) === 0);
  await relay.close();
  const heard = (globalThis as unknown as { heardByModule: Deleted[] }).heardByModule;
  t.same(heard.map((event) => event.gracePeriodDays), [1, 1, 2, 2, 3, 3]);
  t.ok(heard.every((event) => event.userId === BOB && event.type === 'identity.user.deleted'));
  t.equal(handlers.waiting(), 0);
});
