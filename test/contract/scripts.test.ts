import t from 'tap';
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { identityOf } from '../../src/auth/identity.js';
import { createKeyring } from '../../src/keyring.js';
import { createLog } from '../../src/log.js';
import { createRedis, KEYS } from '../../src/store/redis.js';
import { BINDINGS, loadScripts, readHeader, readScripts, type Binding, type Scripts } from '../../src/store/scripts.js';
import { ownRedis } from '../support/stores.js';

type AnyBinding = Binding<unknown, unknown, unknown>;

/** An object that notes which of its members are asked for; each is a text, a list and a function at once. */
function listener(asked: string[]): unknown {
  const anything: unknown = new Proxy(() => anything, { get: (_, name) => (name === Symbol.toPrimitive ? () => 'x' : name === 'toJSON' ? undefined : anything) });
  return new Proxy({}, { get: (_, name) => (asked.push(String(name)), anything) });
}

/** What is wrong with a script's header, seen against its body and its binding. */
function faults(name: string, source: string, binding: AnyBinding | undefined): string[] {
  const found: string[] = [];
  const lines = source.split('\n');
  const { keys, args } = readHeader(source);
  if (!lines[0]!.startsWith(`-- ${name}: `)) found.push('the first line says not what it does');
  if (!/^-- RETURN \S/m.test(source)) found.push('no RETURN line');
  for (const [kind, names] of Object.entries({ KEYS: keys, ARGV: args })) {
    const numbers = [...source.matchAll(new RegExp(`^-- ${kind}\\[(\\d+)\\]`, 'gm'))].map((match) => Number(match[1]));
    if (numbers.length !== names.length || numbers.some((number, i) => number !== i + 1)) found.push(`${kind} are not numbered 1, 2, 3 …`);
  }
  if (keys.length === 0) found.push('no keys: a cluster could not place it');

  const [, locals, values] = /^local (.+?) = (.+)$/.exec(lines.find((line) => line !== '' && !line.startsWith('--')) ?? '') ?? [];
  if (locals !== [...keys, ...args].join(', ')) found.push(`the first line of code names ${locals}`);
  const slots = [...(values ?? '').matchAll(/(KEYS|ARGV)\[(\d+)\]/g)].map((match) => match[0]);
  const expected = [...keys.map((_, i) => `KEYS[${i + 1}]`), ...args.map((_, i) => `ARGV[${i + 1}]`)];
  if (slots.join() !== expected.join()) found.push(`the first line of code takes ${slots.join(', ')}`);
  if (/(KEYS|ARGV)\[/.test(lines.filter((line) => !line.startsWith('--')).slice(1).join('\n'))) found.push('a slot is used by its number below the first line');

  if (!binding) return [...found, 'no binding'];
  for (const [what, list, names] of [['keys', binding.keys, keys], ['args', binding.args, args]] as const) {
    const asked: string[] = [];
    const length = list(listener(asked)).length;
    if (length !== names.length) found.push(`the binding gives ${length} ${what}`);
    if ([...new Set(asked)].join() !== namesGiven(names, asked).join()) found.push(`the binding takes its ${what} as ${asked.join(', ')}`);
  }
  return found;
}

/** A binding may fold a list of its caller into one argument of another name; what it names alike stands in the same order. */
const namesGiven = (names: string[], asked: string[]): string[] => names.map((name, i) => (asked.includes(name) ? name : (asked[i] ?? name)));

const bindingOf = (file: string): AnyBinding | undefined => Object.values(BINDINGS as unknown as Record<string, AnyBinding>).find((binding) => binding.file === file);

t.test('header, first line of code and binding of every script agree', (t) => {
  const scripts = readScripts();
  t.ok(scripts.size >= 4);
  for (const [name, source] of scripts) t.same(faults(name, source, bindingOf(name)), [], name);
  t.end();
});

t.test('the check finds each way in which they drift', (t) => {
  const good = '-- x: does.\n-- KEYS[1] a  one\n-- KEYS[2] b  two\n-- ARGV[1] c  three\n-- RETURN d   four\nlocal a, b, c = KEYS[1], KEYS[2], tonumber(ARGV[1])\nreturn 1\n';
  const binding = { file: 'x', keys: (k: { a: string; b: string }) => [k.a, k.b], args: (a: { c: number }) => [a.c], read: () => 1 } as unknown as AnyBinding;
  t.same(faults('x', good, binding), []);
  const drifted = [
    good.replace('-- x', '-- y'),
    good.replace('-- RETURN d   four\n', ''),
    good.replace('-- KEYS[2] b  two\n', ''),
    good.replace('ARGV[1] c', 'ARGV[2] c'),
    good.replace('-- ARGV[1] c', '-- ARGV[1] other'),
    good.replace('local a, b', 'local b, a'),
    good.replace('KEYS[1], KEYS[2]', 'KEYS[2], KEYS[1]'),
    good.replace('return 1', 'return ARGV[1]'),
    good.replace('-- KEYS[1] a  one\n-- KEYS[2] b  two', '-- KEYS[1] b  two\n-- KEYS[2] a  one').replace('local a, b', 'local b, a'),
  ];
  for (const source of drifted) t.not(faults('x', source, binding).length, 0, source);
  t.not(faults('x', good, { ...binding, args: () => [] }).length, 0, 'a binding that forgets an argument');
  t.not(faults('x', good, undefined).length, 0, 'no binding');
  t.end();
});

type Calls = { [N in keyof Scripts]: { keys: Parameters<Scripts[N]>[0]; args: Parameters<Scripts[N]>[1] } };

/** One call of each script, with keys as the service builds them from hostile input. */
function calls(keyring: ReturnType<typeof createKeyring>): Calls {
  const identity = identityOf(keyring, '}a}b{c{@example.com');
  const counted = keyring.mac('limit', '{}{user}').toString('base64url', 0, 16);
  const gate = { bucket: KEYS.gate(identity, 'source'), held: KEYS.gateHeld(identity, 'source'), all: KEYS.gate(identity, null) };
  const policy = { ticket: 't', threshold: 5, holdMs: 1000, storedMs: 0, storedStep: 1, keepMs: 60_000, quietMs: 60_000, delaysMs: [2000], locksMs: [1000] };
  const events = [{ type: 'identity.user.deleted', message: '{}' }];
  return {
    rateLimit: { keys: { window: KEYS.limit('export', counted) }, args: { max: 3, windowMs: 60_000, ticket: 't' } },
    loginReserve: { keys: gate, args: policy },
    loginSettle: { keys: gate, args: { ...policy, outcome: 'failure' } },
    loginRecorded: { keys: gate, args: {} },
    otpIssue: { keys: { otp: KEYS.otp(counted, 'delete'), issues: KEYS.otpIssues(counted) }, args: { codeHash: 'h', ttlMs: 60_000, maxIssues: 10, windowMs: 60_000, ticket: 't' } },
    otpClaim: { keys: { otp: KEYS.otp(counted, 'delete'), other: KEYS.otp(counted, 'restore') }, args: { codeHash: 'h', maxFailures: 5, lockMs: 60_000, ticket: 't', claimMs: 1000 } },
    otpSettle: { keys: { otp: KEYS.otp(counted, 'delete') }, args: { ticket: 't', outcome: 'give back' } },
    relayTake: { keys: { lease: KEYS.relayLease }, args: { token: 't', leaseMs: 60_000 } },
    relayPublish: { keys: { stream: KEYS.events, lease: KEYS.relayLease }, args: { token: 't', leaseMs: 60_000, keepMs: 60_000, events } },
    relayRelease: { keys: { lease: KEYS.relayLease }, args: { token: 't', leaseMs: 60_000 } },
    eventRepeat: { keys: { stream: KEYS.events }, args: { channel: 'identity.x', message: '{}' } },
    deletionAsk: { keys: { answers: KEYS.deletionAnswers('2f1e') }, args: { keepMs: 60_000, channel: 'identity.x', message: '{}' } },
  };
}

t.test('every script runs on a cluster, keeps to keys of one slot, and leaves none without an end', async (t) => {
  const server = await ownRedis(t, ['--cluster-enabled', 'yes']);
  const admin = new Redis(server.url);
  t.teardown(() => admin.disconnect());
  await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  while (!String(await admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) await new Promise((resolve) => setTimeout(resolve, 20));
  const redis = createRedis(server.url, createLog('silent'));
  await redis.connect();
  t.teardown(() => redis.disconnect());
  const scripts = loadScripts(redis) as unknown as Record<string, (keys: object, args: object) => Promise<unknown>>;
  const samples = calls(createKeyring(randomBytes(32), null));

  for (const [name, { keys, args }] of Object.entries(samples as unknown as Record<string, { keys: object; args: object }>)) {
    await t.resolves(scripts[name]!(keys, args), name);
    for (const key of await admin.keys('*')) {
      t.match(key, /^idp:/, `${name}: ${key}`);
      if (key !== KEYS.events) t.ok((await admin.pttl(key)) > 0, `${name}: ${key} expires`);
    }
  }
  await t.rejects(scripts['loginRecorded']!({ bucket: 'idp:{a}:x', all: 'idp:{b}:x' }, {}), /CROSSSLOT/, 'this cluster would have noticed');
});

t.test('every key that names an account, an address or a session stays in one slot per owner', (t) => {
  const tag = (key: string): string | undefined => /\{([^}]+)\}/.exec(key)?.[1];
  t.equal(tag(KEYS.gate('id', null)), tag(KEYS.gate('id', 'source')));
  t.equal(tag(KEYS.gate('id', null)), tag(KEYS.gateHeld('id', 'source')));
  const built: unknown[] = Object.values(KEYS);
  for (const build of built) t.match(typeof build === 'string' ? build : (build as (...parts: string[]) => string)('a', 'b', 'c'), /^idp:/);
  t.end();
});
