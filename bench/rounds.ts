import { faultsIn } from './findings.js';
import type { LoadResult } from './load/job.js';
import type { PeerMode } from './peers.js';
import type { Stage } from './stage.js';

/** One measurement of one thing; latencies in ms. What does not apply is null. */
export interface Sample {
  perSecond: number;
  p50: number | null;
  p99: number | null;
  /** CPU time per piece of work in the process that does it, in µs. */
  cpuUs: number | null;
  /** Share of all cores that was idle, and that the load program used; 0 to 1. */
  idle: number | null;
  load: number | null;
}

/** Null when it could not be measured. */
export type Measure = (round: Partial<Record<string, Sample | null>>) => Promise<Sample | null>;

/**
 * Takes every measurement once per round, in the order given, so that a slow minute of the machine meets all of them.
 * Before the first there is a round that does not count, since V8 goes on optimising for half a minute of load
 * and the question is what a server does that has been running; `--quick` has no time for it.
 */
export async function inRounds<Names extends string>(stage: Stage, title: string, measures: Record<Names, Measure>): Promise<Record<Names, (Sample | null)[]>> {
  const { rounds, heat } = stage.plan;
  const entries = Object.entries(measures) as [Names, Measure][];
  const taken = Object.fromEntries(entries.map(([name]) => [name, []])) as unknown as Record<Names, (Sample | null)[]>;
  for (let round = heat ? 0 : 1; round <= rounds; round += 1) {
    await stage.listen();
    const now: Partial<Record<string, Sample | null>> = {};
    for (const [name, measure] of entries) now[name] = await measure(now);
    const figures = entries.map(([name]) => `${name} ${now[name] ? `${Math.round(now[name].perSecond)}/s` : '-'}`);
    stage.say(`${title} ${round === 0 ? 'warm-up' : `${round}/${rounds}`}: ${figures.join(', ')}`);
    if (round > 0) for (const [name] of entries) taken[name].push(now[name]!);
  }
  return taken;
}

/** Keeps what each counted round gave beside its sample. */
export function keeper<Result>(stage: Stage): { keep: (result: Result) => Result; kept: () => Result[] } {
  const all: Result[] = [];
  return { keep: (result) => (all.push(result), result), kept: () => all.slice(stage.plan.heat ? 1 : 0) };
}

/** A load's replies of one kind as a sample; `perSecond` counts 200s only. */
export function sampleOf({ replies, perSecond, cpuUs, idle, load }: LoadResult): Sample {
  return { perSecond, p50: replies['200']?.p50 ?? null, p99: replies['200']?.p99 ?? null, cpuUs, idle, load };
}

export const bareSample = (result: Partial<Sample> & { perSecond: number }): Sample => ({ p50: null, p99: null, cpuUs: null, idle: null, load: null, ...result });

/** A load on the peer; null, and a word why, when it cannot be had or does not answer as it should. */
export const peerMeasure = (stage: Stage, mode: PeerMode, traffic: 'peer-login' | 'peer-session'): Measure => async () => {
  try {
    const target = await stage.peer(mode);
    if (!target) return null;
    const result = await stage.load({ traffic, target, pace: { connections: traffic === 'peer-login' ? stage.loginConnections : stage.connections } });
    const faults = faultsIn('better-auth', [result]);
    for (const fault of faults) stage.say(`left out: ${fault}`);
    return faults.length > 0 ? null : sampleOf(result);
  } catch (error) {
    stage.say(`better-auth left out: ${(error as Error).message}`);
    return null;
  }
};

/** What stands beside a row of the peer that has no figures. */
export const whyNoPeer = ({ facts }: Stage): string => (facts.peer.startsWith('skipped') ? 'skipped: better-auth could not be installed' : 'skipped: better-auth did not answer as it should');
