import { Agent, request } from 'node:http';
import { busyShare, readClocks, type Clocks } from './clocks.js';
import { emailOf, type CpuSplit, type LoadJob, type LoadResult, type LoadSetup } from './job.js';

/** uWebSockets.js closes idle connections after 10 s; ours go before, so that none is closed under a request. */
const IDLE_MS = 4_000;
/** No reply within so long counts as none. */
const TIMEOUT_MS = 15_000;
const MOST_SOCKETS = 4_096;

const setup = JSON.parse(process.argv[2]!) as LoadSetup;
const agent = new Agent({ keepAlive: true, maxSockets: MOST_SOCKETS, timeout: IDLE_MS });
/** The next account of each group: none comes back before all others had their turn. */
const next = new Map<string, number>();

function bodyFor(group: string): string {
  const n = next.get(group) ?? 0;
  next.set(group, (n + 1) % setup.count);
  return JSON.stringify({ email: emailOf(group, n), password: setup.password });
}

/** One login; gives null when it brought tokens, else what came instead. */
function logIn(group: string): Promise<string | null> {
  const body = bodyFor(group);
  const headers = { 'user-agent': 'portcullis-tune', 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve) => {
    const sent = request(`${setup.base}/api/auth/login`, { method: 'POST', agent, headers, timeout: TIMEOUT_MS }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      reply.on('error', () => resolve('none'));
      reply.on('end', () => resolve(reply.statusCode === 200 ? null : [reply.statusCode, /"code":"(\w+)"/.exec(text)?.[1]].join(' ').trim()));
    });
    sent.on('timeout', () => sent.destroy(new Error('no reply')));
    sent.on('error', () => resolve('none'));
    sent.end(body);
  });
}

/** Each line logs in again when it was answered. */
async function closed(connections: number, until: number, one: (from: number) => Promise<void>): Promise<void> {
  const line = async (): Promise<void> => {
    while (performance.now() < until) await one(performance.now());
  };
  await Promise.all(Array.from({ length: connections }, line));
}

/** Logins as many people who know nothing of each other make them; each counts from the moment it was due. */
async function random(perSecond: number, until: number, one: (from: number) => Promise<void>): Promise<void> {
  const open = new Set<Promise<void>>();
  const pause = (): number => (-Math.log(1 - Math.random()) * 1000) / perSecond;
  for (let due = performance.now() + pause(); due < until; due += pause()) {
    const early = due - performance.now();
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
    const login: Promise<void> = one(due).then(() => void open.delete(login));
    open.add(login);
  }
  await Promise.all(open);
}

async function measure({ group, pace, warmMs, measureMs }: LoadJob): Promise<LoadResult> {
  const from = performance.now() + warmMs;
  const to = from + measureMs;
  const times: number[] = [];
  const failures: Record<string, number> = {};
  const one = async (due: number): Promise<void> => {
    const failure = await logIn(group);
    const now = performance.now();
    if (now < from || now >= to) return;
    if (failure === null) times.push(now - due);
    else failures[failure] = (failures[failure] ?? 0) + 1;
  };
  const [start, end] = [clocksIn(warmMs), clocksIn(warmMs + measureMs)];
  await ('connections' in pace ? closed(pace.connections, to, one) : random(pace.perSecond, to, one));
  const [before, after] = [await start, await end];
  times.sort((a, b) => a - b);
  const quantile = (share: number): number => times[Math.min(times.length - 1, Math.ceil(times.length * share) - 1)] ?? 0;
  return { perSecond: times.length / (measureMs / 1000), p50: quantile(0.5), p99: quantile(0.99), failures, cpu: split(before, after, times.length), idle: 1 - busyShare(before, after) };
}

const clocksIn = (ms: number): Promise<Clocks> => new Promise((resolve) => setTimeout(() => resolve(readClocks(setup.pid, setup.stores)), ms));

function split(before: Clocks, after: Clocks, logins: number): CpuSplit | null {
  if (before.service === null || after.service === null || logins === 0) return null;
  const each = (ms: number): number => Math.max(0, (ms * 1000) / logins);
  const [hashing, service, load, stores] = [after.hashing - before.hashing, after.service - before.service, after.own - before.own, after.stores - before.stores];
  const busy = after.all - after.idle - (before.all - before.idle);
  return { hash: each(hashing), service: each(service - hashing), load: each(load), stores: each(stores), others: each(busy - service - load - stores) };
}

// Ctrl-C reaches the whole group; the order of the stop is not ours to decide.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
process.on('message', (job: LoadJob) => void measure(job).then((result) => process.send!(result)));
