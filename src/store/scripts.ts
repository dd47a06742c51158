import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { reply, type Redis } from './redis.js';

const FOLDER = new URL('../../../lua/', import.meta.url);

type Arg = string | number;

/** One Lua file with the only code that knows the positions of its keys, arguments and reply. */
export interface Binding<K, A, R> {
  file: string;
  keys: (k: K) => Arg[];
  args: (a: A) => Arg[];
  read: (reply: never) => R;
}

function script<K, A, R>(file: string, keys: (k: K) => Arg[], args: (a: A) => Arg[], read: (reply: never) => R): Binding<K, A, R> {
  return { file, keys, args, read };
}

const ENTERED = ['entered', 'throttled', 'locked', 'full'] as const;
const CLAIMED = ['claimed', 'refused', 'locked'] as const;
const SETTLED = { release: 0, success: 1, failure: 2 } as const;

export const BINDINGS = {
  rateLimit: script(
    'rate-limit',
    (k: { window: string }) => [k.window],
    (a: { max: number; windowMs: number; ticket: string }) => [a.max, a.windowMs, a.ticket],
    ([allowed, retryMs]: [number, number]) => ({ allowed: allowed === 1, retryMs }),
  ),
  loginReserve: script(
    'login-reserve',
    (k: { bucket: string; held: string }) => [k.bucket, k.held],
    (a: { ticket: string; threshold: number; holdMs: number; storedMs: number; storedStep: number; keepMs: number }) => [a.ticket, a.threshold, a.holdMs, a.storedMs, a.storedStep, a.keepMs],
    ([outcome, retryMs, recorded]: [number, number, number]) => ({ outcome: ENTERED[outcome]!, retryMs, recorded: recorded === 1 }),
  ),
  loginSettle: script(
    'login-settle',
    (k: { bucket: string; held: string; all: string }) => [k.bucket, k.held, k.all],
    (a: { ticket: string; outcome: keyof typeof SETTLED; threshold: number; quietMs: number; delaysMs: number[]; locksMs: number[] }) => [
      a.ticket,
      SETTLED[a.outcome],
      a.threshold,
      a.quietMs,
      a.delaysMs.join(','),
      a.locksMs.join(','),
    ],
    ([held, lockedMs, delayMs, ownLockMs, ownStep, allLockMs, allStep]: [number, number, number, number, number, number, number]) => ({ held: held === 1, lockedMs, delayMs, ownLockMs, ownStep, allLockMs, allStep }),
  ),
  loginRecorded: script(
    'login-recorded',
    (k: { bucket: string; all: string }) => [k.bucket, k.all],
    () => [],
    (marked: number) => marked,
  ),
  otpIssue: script(
    'otp-issue',
    (k: { otp: string; issues: string }) => [k.otp, k.issues],
    (a: { codeHash: string; ttlMs: number; maxIssues: number; windowMs: number; ticket: string }) => [a.codeHash, a.ttlMs, a.maxIssues, a.windowMs, a.ticket],
    (issued: number) => issued === 1,
  ),
  otpClaim: script(
    'otp-claim',
    (k: { otp: string; other: string }) => [k.otp, k.other],
    (a: { codeHash: string; maxFailures: number; lockMs: number; ticket: string; claimMs: number }) => [a.codeHash, a.maxFailures, a.lockMs, a.ticket, a.claimMs],
    ([outcome, retryMs]: [number, number]) => ({ outcome: CLAIMED[outcome]!, retryMs }),
  ),
  otpSettle: script(
    'otp-settle',
    (k: { otp: string }) => [k.otp],
    (a: { ticket: string; outcome: 'give back' | 'spend' }) => [a.ticket, a.outcome === 'spend' ? 1 : 0],
    (held: number) => held === 1,
  ),
  relayTake: script(
    'relay-take',
    (k: { lease: string }) => [k.lease],
    (a: { token: string; leaseMs: number }) => [a.token, a.leaseMs],
    ([taken, leftMs]: [number, number]) => ({ taken: taken === 1, leftMs }),
  ),
  relayPublish: script(
    'relay-publish',
    (k: { stream: string; lease: string }) => [k.stream, k.lease],
    (a: { token: string; leaseMs: number; keepMs: number; events: { type: string; message: string }[] }) => [
      a.token,
      a.leaseMs,
      a.keepMs,
      JSON.stringify(a.events.flatMap((event) => [event.type, event.message])),
    ],
    (published: number) => published === 1,
  ),
  relayRelease: script(
    'relay-release',
    (k: { lease: string }) => [k.lease],
    (a: { token: string; leaseMs: number }) => [a.token, a.leaseMs],
    (again: number) => again === 1,
  ),
  eventRepeat: script(
    'event-repeat',
    (k: { stream: string }) => [k.stream],
    (a: { channel: string; message: string }) => [a.channel, a.message],
    (told: number) => told === 1,
  ),
  deletionAsk: script(
    'deletion-ask',
    (k: { answers: string }) => [k.answers],
    (a: { keepMs: number; channel: string; message: string }) => [a.keepMs, a.channel, a.message],
    (asked: number) => asked === 1,
  ),
} as const;

type Bindings = typeof BINDINGS;
type Keys<B> = B extends Binding<infer K, never, unknown> ? K : B extends Binding<infer K, infer _A, infer _R> ? K : never;
type Args<B> = B extends Binding<infer _K, infer A, infer _R> ? A : never;
type Result<B> = B extends Binding<infer _K, infer _A, infer R> ? R : never;

/** Every script as a function of named keys and named arguments. Fails with UNAVAILABLE while Redis is away. */
export type Scripts = { readonly [N in keyof Bindings]: (keys: Keys<Bindings[N]>, args: Args<Bindings[N]>) => Promise<Result<Bindings[N]>> };

/** What a script's header declares: its KEYS and ARGV names, in order. */
export interface Header {
  keys: string[];
  args: string[];
}

export function readHeader(source: string): Header {
  const named = (kind: string): string[] => [...source.matchAll(new RegExp(`^-- ${kind}\\[(\\d+)\\] (\\w+)`, 'gm'))].map((match) => match[2]!);
  return { keys: named('KEYS'), args: named('ARGV') };
}

/** Names of the Lua files and their sources. */
export function readScripts(folder: URL = FOLDER): Map<string, string> {
  const files = readdirSync(fileURLToPath(folder)).filter((name) => name.endsWith('.lua'));
  return new Map(files.map((name) => [name.slice(0, -4), readFileSync(new URL(name, folder), 'utf8')]));
}

/**
 * With this line Redis refuses a script as a whole when it is full, read-only or cut off. Without it a script gets as
 * far as its first write, and one whose first write frees memory is let through.
 */
const CHECKED = '#!lua\n';

/**
 * Defines every script on the client.
 * @param observe gets each call's duration in seconds, and its name
 * @throws when a file has no binding or a binding has no file
 */
export function loadScripts(redis: Redis, observe: (seconds: number, script: string) => void = () => undefined): Scripts {
  const sources = readScripts();
  const bound = new Set(Object.values(BINDINGS).map((binding) => binding.file));
  for (const file of sources.keys()) if (!bound.has(file)) throw new Error(`lua/${file}.lua has no binding`);

  const calls = Object.entries(BINDINGS as Record<string, Binding<unknown, unknown, unknown>>).map(([name, binding]) => {
    const source = sources.get(binding.file);
    if (source === undefined) throw new Error(`lua/${binding.file}.lua is missing`);
    redis.defineCommand(binding.file, { numberOfKeys: readHeader(source).keys.length, lua: `${CHECKED}${source}` });
    const command = (redis as unknown as Record<string, (...values: Arg[]) => Promise<never>>)[binding.file]!.bind(redis);
    return [
      name,
      async (keys: unknown, args: unknown) => {
        const started = performance.now();
        try {
          return binding.read(await reply(command(...binding.keys(keys), ...binding.args(args))));
        } finally {
          observe((performance.now() - started) / 1000, binding.file);
        }
      },
    ];
  });
  return Object.fromEntries(calls) as Scripts;
}
