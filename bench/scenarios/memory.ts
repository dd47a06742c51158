import { faultsIn, rowOf, targetOf, type Finding } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { readMemory, watchMemory, type Memory, type MemoryCourse } from '../memory.js';
import { spreadOf } from '../numbers.js';
import { inRounds, keeper, sampleOf } from '../rounds.js';
import type { Stage } from '../stage.js';
import { FILL_MS, REFUSED } from './storm.js';

/** What a node may take beside the memory of its hashes, in MiB. */
const BASE_MIB = 120;
/** Until a node that has just started is at rest, in ms: V8 collects what the start has left after some 20 s; `--quick` does not wait for it. */
const REST_MS = 30_000;
const QUICK_REST_MS = 2_000;
const TIMES = 10;

interface Taken {
  idle: Memory | null;
  storm: MemoryCourse | null;
  after: Memory | null;
  logins: LoadResult;
}

/** The memory of a node of its own in each round: at rest after its start, and under ten times the logins it can do. */
export async function memory(stage: Stage): Promise<Finding> {
  const { plan, config } = stage;
  const { keep, kept } = keeper<Taken>(stage);
  const warmMs = FILL_MS + plan.warmMs;
  const { perSecond } = await stage.load({ traffic: 'login', pace: { connections: stage.loginConnections } });
  const { storm } = await inRounds(stage, 'memory', {
    storm: async () => {
      const { target, stop } = await stage.startNode('portcullis-memory');
      try {
        await new Promise((resolve) => setTimeout(resolve, plan.quick ? QUICK_REST_MS : REST_MS));
        const idle = readMemory(target.pid);
        const [logins, course] = await Promise.all([stage.load({ traffic: 'login', target, pace: { perSecond: Math.max(1, TIMES * perSecond) }, warmMs }), watchMemory(target.pid, 0, warmMs + plan.measureMs)]);
        return sampleOf(keep({ idle, storm: course, after: readMemory(target.pid), logins }).logins);
      } finally {
        await stop();
      }
    },
  });
  const rounds = kept();
  const atMost = BASE_MIB + (config.hashThreads * config.argon2MemoryKib) / 1024;
  const [idle, high] = [rounds.map((one) => one.idle?.resident ?? null), rounds.map((one) => one.storm?.highest ?? null)];
  const own = (each: (Memory | null)[]): string => `${spreadOf(each.map((one) => one?.own ?? null))?.median.toFixed(0) ?? '-'} MiB of it its own`;
  const why = 'the system does not tell';
  return {
    rows: [{ ...rowOf('memory-storm', 'login of a new node in a storm', storm, `at rest ${own(rounds.map((one) => one.idle))}, after the storm ${own(rounds.map((one) => one.after))}`), cpuUs: null }],
    targets: [
      targetOf(`memory at rest (${BASE_MIB} MiB and ${config.hashThreads} hashes)`, { atMost }, 'MiB', idle, why),
      targetOf('memory under a storm, at its highest', { atMost }, 'MiB', high, why),
    ],
    faults: faultsIn('login', rounds.map(({ logins }) => logins), ['200', REFUSED]),
  };
}
