import { pause } from '../support/attempts.js';
import type { Teardown } from '../support/stores.js';
import { until } from '../support/patience.js';
import { chanceOf, rounds } from './chance.js';
import { FAULTS } from './faults.js';
import { startLoad } from './load.js';
import { watchMemory, type Slope } from './memory.js';
import { judge } from './verdict.js';
import { noteOutput, startWorld, type World } from './world.js';

export interface Plan {
  seed: number;
  /** How many faults, how long from one to the next and how long each lasts, in ms. */
  faults: number;
  everyMs: number;
  lastsMs: number;
  /** Mean pause of a user between two requests, in ms. */
  restMs: number;
  /** Told of every fault once it is over, with what was complained of since the one before. */
  onFault?: (name: string, backMs: number, n: number, complaints: string[]) => void;
}

export interface Outcome {
  complaints: string[];
  /** Answers by kind and status. */
  counts: Map<string, number>;
  /** Longest time until every node served again, by fault, in ms, and how often it came. */
  faults: Map<string, { times: number; slowestMs: number }>;
  accounts: { lives: number; deletions: number; restores: number; due: number };
  races: number;
  runs: number;
  events: number;
  tookMs: number;
  /** Memory of each node's last process. */
  slopes: Map<string, Slope | null>;
}

const BACK_MS = 5000;
const SAMPLE_MS = 2000;
/** A process takes what it needs first: so much of its time does not count. */
const WARM_UP = 0.25;

/** Mixed load at three nodes while one thing after the other breaks, in an order that the seed decides. */
export async function soak(t: Teardown, plan: Plan): Promise<Outcome> {
  const chance = chanceOf(plan.seed);
  const world = await startWorld(t);
  const { places, complaints } = world;
  const probe = await world.account();
  const started = performance.now();
  const load = startLoad(world, chanceOf(plan.seed + 1), plan.restMs);
  const memory = watchMemory();
  const sampling = setInterval(() => places.forEach(({ name, node, isDoomed }) => !isDoomed && memory.sample(name, node.pid)), SAMPLE_MS);
  t.teardown(() => clearInterval(sampling));

  const faults: Outcome['faults'] = new Map();
  const order = rounds(FAULTS, chance);
  let told = 0;
  for (let n = 1; n <= plan.faults; n += 1) {
    const began = performance.now();
    await pause((plan.everyMs - plan.lastsMs) * 0.5);
    const fault = order.next().value;
    await fault.begin(world, chance);
    await pause(fault.end ? plan.lastsMs : 0);
    await fault.end?.(world);
    const backMs = await untilBack(world, probe);
    if (backMs > BACK_MS) complaints.push(`back only ${backMs.toFixed(0)} ms after: ${fault.name}`);
    const { times = 0, slowestMs = 0 } = faults.get(fault.name) ?? {};
    faults.set(fault.name, { times: times + 1, slowestMs: Math.max(slowestMs, backMs) });
    plan.onFault?.(fault.name, backMs, n, complaints.slice(told));
    told = complaints.length;
    await pause(Math.max(0, plan.everyMs - (performance.now() - began)));
  }
  const tookMs = performance.now() - started;
  clearInterval(sampling);
  const slopes = new Map(places.map(({ name }) => [name, memory.slopeOf(name, tookMs * WARM_UP)]));
  await load.stop();
  await judge(world, load);
  for (const place of places) noteOutput(world, place);
  const sum = (of: 'deleted' | 'restored'): number => load.lives.reduce((total, life) => total + life[of], 0);
  const accounts = { lives: load.lives.length, deletions: sum('deleted'), restores: sum('restored'), due: load.due.length };
  return { complaints, counts: load.counts, faults, accounts, races: load.races, runs: load.runs, events: world.consumer.events.size, tookMs, slopes };
}

/** How long until every node lets somebody in. */
async function untilBack({ places }: World, { email, password }: { email: string; password: string }): Promise<number> {
  const each = places.map(({ node }) => until(async () => (await node.client().login(email, password).catch(() => null))?.status === 200, 6 * BACK_MS));
  return Math.max(...(await Promise.all(each)));
}

/** What came of it, in one line. */
export function figureOf({ complaints, counts, accounts, races, runs, events, slopes }: Outcome): string {
  const all = [...counts];
  const total = (of: (key: string) => boolean): number => all.reduce((sum, [key, n]) => sum + (of(key) ? n : 0), 0);
  const slope = slopes.get('node 1');
  return [
    `${total(() => true)} requests: ${total((key) => key.endsWith(' 503'))} × 503, ${total((key) => key.endsWith(' 500'))} × 500, ${total((key) => key.endsWith(' cut'))} at nodes that were ended`,
    `${races} races, ${accounts.deletions} deletions and ${accounts.restores} restores of ${accounts.lives} accounts, ${accounts.due} purged in ${runs} runs, ${events} events`,
    `${complaints.length} broken rules (exits, statuses, T14, T29, T34, T37)`,
    slope ? `memory ${slope.fromMib.toFixed(0)} to ${slope.toMib.toFixed(0)} MiB over ${(slope.overMs / 60_000).toFixed(1)} min, ${slope.mibPerHour.toFixed(1)} MiB/h` : 'too short for a slope of memory',
  ].join('; ');
}
