// Mostly waits.

import { Redis as Client } from 'ioredis';
import t, { type Test } from 'tap';
import { loadHandlers } from '../../../src/events/handlers.js';
import { createDeletionValidators, DEADLINE_MS, type DeletionValidators } from '../../../src/events/validators.js';
import { ANN, listen, openNode, openStores, pause, type Node } from './node.js';
import { everyKey } from '../../support/keyspace.js';
import { atMost } from '../../support/patience.js';

// Most of them wait for the same deadline.
t.jobs = 8;

interface Question {
  id: string;
  type: string;
  time: string;
  userId: string;
  email: string;
  validationId: string;
  replyTo: string;
  deadline: string;
}

const question = { userId: ANN, email: 'ann@example.com' };
const module = (name: string): string => `test/src/events/modules/${name}.mjs`;

/** A node that asks, and services that answer each question by `answers`. */
async function arrange(t: Test, setup: { validators?: string; handlers?: string; answers?: (question: Question) => unknown[] }) {
  const urls = await openStores(t);
  const node = await openNode(t, urls, { DELETION_VALIDATORS: setup.validators ?? '', IDENTITY_HANDLERS: setup.handlers ?? '' });
  const services = new Client(urls.redis);
  services.on('error', () => undefined);
  t.teardown(() => services.disconnect());
  const asked: Question[] = [];
  await listen(t, urls.redis, (text, channel) => {
    const heard = JSON.parse(text) as Question;
    asked.push({ ...heard, type: channel });
    for (const answer of setup.answers?.(heard) ?? []) void services.rpush(heard.replyTo, typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  return { urls, node, asked, services, validators: createDeletionValidators(node, await loadHandlers(node)) };
}

async function timed(validators: DeletionValidators) {
  const started = performance.now();
  const verdict = await validators.ask(question);
  return { verdict, ms: performance.now() - started };
}

const keysWithoutTtl = async ({ redis }: Node): Promise<string[]> => {
  const keys = await everyKey(redis);
  const ttls = await Promise.all(keys.map((key) => redis.pttl(key)));
  return keys.filter((_, index) => ttls[index] === -1);
};

t.test('the question carries what a service needs, on its channel and not on the stream', async (t) => {
  const { node, asked, validators } = await arrange(t, { validators: 'bookings:required', answers: () => [{ source: 'bookings' }] });
  const before = Date.now();
  await validators.ask(question);
  t.match(asked, [{ type: 'identity.user.pre_deletion_validate', ...question, id: /^[\w-]{36}$/, validationId: /^[\w-]{36}$/, replyTo: /^idp:/, time: /Z$/, deadline: /Z$/ }]);
  t.equal(Date.parse(asked[0]!.deadline) - Date.parse(asked[0]!.time), DEADLINE_MS);
  t.ok(Math.abs(Date.parse(asked[0]!.time) - before) < 10_000);
  t.equal(await node.redis.exists('idp:events'), 0);
});

t.test('when all have answered the verdict comes at once', async (t) => {
  const { validators } = await arrange(t, { validators: 'bookings:required,crm:advisory', answers: () => [{ source: 'crm' }, { source: 'bookings' }] });
  const { verdict, ms } = await timed(validators);
  t.same(verdict, { reasons: [], unavailable: [] });
  t.ok(ms < 1800, `${ms} ms`);
});

t.test('all reasons are collected, of advisory services and of modules too', async (t) => {
  const { validators } = await arrange(t, {
    validators: 'bookings:required,crm:advisory',
    handlers: module('blocks-twice'),
    answers: () => [{ source: 'bookings', reason: 'active booking' }, { source: 'crm', reason: 'open case' }],
  });
  const { reasons, unavailable } = await validators.ask(question);
  t.same(unavailable, []);
  t.same(reasons.map(({ source, reason }) => `${source}: ${reason}`), [`bookings: active booking of ${ANN}`, 'billing: open invoice of ann@example.com', 'bookings: active booking', 'crm: open case']);
});

t.test('a silent required service is unavailable at the deadline, and the reasons of others are kept', async (t) => {
  const { validators } = await arrange(t, { validators: 'bookings:required,billing:required', answers: () => [{ source: 'billing', reason: 'open invoice' }] });
  const { verdict, ms } = await timed(validators);
  t.same(verdict, { reasons: [{ source: 'billing', reason: 'open invoice' }], unavailable: ['bookings'] });
  t.ok(ms > 1900 && ms < atMost(2300), `${ms} ms`);
});

t.test('a silent advisory service is not waited for beyond the deadline and blocks nothing', async (t) => {
  const { validators } = await arrange(t, { validators: 'crm:advisory' });
  const { verdict, ms } = await timed(validators);
  t.same(verdict, { reasons: [], unavailable: [] });
  t.ok(ms < atMost(2300), `${ms} ms`);
});

t.test('modules that throw or hang are unavailable, named by their path', async (t) => {
  const { validators } = await arrange(t, { handlers: [module('throws'), module('hangs')].join() });
  const { verdict, ms } = await timed(validators);
  t.same(verdict, { reasons: [{ source: 'stock', reason: 'goods on the way' }], unavailable: [module('throws'), module('hangs')] });
  t.ok(ms < atMost(2300), `${ms} ms`);
});

t.test('answers that are malformed, or of services nobody named, neither agree nor block', async (t) => {
  const bad = ['', 'yes', '[]', 'null', '{"source":1}', '{"source":"bookings","reason":""}', '{"source":"bookings","reason":null}', `{"source":"bookings","reason":"${'x'.repeat(5000)}"}`, { source: 'stranger', reason: 'because' }, { source: 'stranger' }];
  const { validators } = await arrange(t, { validators: 'bookings:required', answers: () => bad });
  t.same(await validators.ask(question), { reasons: [], unavailable: ['bookings'] });
});

t.test('a flood of malformed answers does not hide the right one', async (t) => {
  const { validators } = await arrange(t, { validators: 'bookings:required', answers: () => [...Array.from({ length: 350 }, () => 'noise'), { source: 'bookings', reason: 'active booking' }] });
  t.same(await validators.ask(question), { reasons: [{ source: 'bookings', reason: 'active booking' }], unavailable: [] });
});

t.test('questions asked at once do not mix their answers', async (t) => {
  const { validators } = await arrange(t, { validators: 'bookings:required', answers: ({ userId }) => [{ source: 'bookings', reason: userId }] });
  const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
  const verdicts = await Promise.all(users.map((userId) => validators.ask({ userId, email: 'x@example.com' })));
  t.same(verdicts.map((verdict) => verdict.reasons.map((reason) => reason.reason)), users.map((user) => [user]));
});

t.test('no answer leaves a key without a TTL, however late it comes', async (t) => {
  const { node, asked, services, validators } = await arrange(t, { validators: 'bookings:required' });
  await validators.ask(question);
  await services.rpush(asked[0]!.replyTo, '{"source":"bookings"}');
  t.same(await keysWithoutTtl(node), []);
  t.equal(await node.redis.llen(asked[0]!.replyTo), 2);
});

t.test('without Redis whoever is required is unavailable, and the question counts as unasked when nobody is', async (t) => {
  for (const [validators, unavailable] of [
    ['bookings:required,crm:advisory', ['bookings']],
    ['', ['redis']],
  ] as const) {
    const { urls, validators: asking } = await arrange(t, { validators });
    await urls.server.stop();
    await pause(20);
    const { verdict, ms } = await timed(asking);
    t.same(verdict, { reasons: [], unavailable });
    t.ok(ms < 1800, `${ms} ms`);
  }
});
