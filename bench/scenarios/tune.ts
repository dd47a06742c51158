import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { faultsIn, ratioNote, ratios, rowOf, targetOf, type Finding } from '../findings.js';
import type { LoadResult } from '../load/job.js';
import { bareSample, inRounds, keeper, sampleOf } from '../rounds.js';
import type { Stage } from '../stage.js';

/** What the prediction may be off by, in percent. */
const ALLOWED = 15;
/** Longest time that one run of `tune --quick` may take, in ms. */
const PATIENCE_MS = 180_000;
const CLI = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

/** What `tune --quick --json` says of one cost and number of threads. */
interface Cell {
  memoryKib: number;
  passes: number;
  threads: number;
  perSecond: number;
}

/** The logins per second that `npm run cli -- tune` predicts for the settings of this bench, beside those that the bench counts. */
export async function tune(stage: Stage): Promise<Finding> {
  const { keep, kept } = keeper<LoadResult>(stage);
  const { counted, predicted } = await inRounds(stage, 'tune', {
    counted: async () => sampleOf(keep(await stage.load({ traffic: 'login', pace: { connections: stage.loginConnections } }))),
    predicted: async () => bareSample({ perSecond: await predict(stage) }),
  });
  const ratio = ratios(predicted, counted);
  return {
    rows: [rowOf('tune-counted', 'login', counted), rowOf('tune-predicted', 'predicted by tune --quick', predicted, ratioNote(ratio, 'logins counted'))],
    targets: [targetOf('prediction of tune, off by', { atMost: ALLOWED }, '%', ratio.map((one) => one && 100 * Math.abs(one - 1)))],
    faults: faultsIn('login', kept()),
  };
}

/** With servers of its own: those of this bench are in use. */
async function predict({ config }: Stage): Promise<number> {
  const { MYSQL_URL: _mysql, REDIS_URL: _redis, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, '--json', 'tune', '--quick', '--stores', 'own'], { env, timeout: PATIENCE_MS, maxBuffer: 2 ** 24 });
  const { cells } = JSON.parse(stdout) as { cells: Cell[] };
  const cell = cells.find(({ memoryKib, passes, threads }) => memoryKib === config.argon2MemoryKib && passes === config.argon2Passes && threads === config.hashThreads);
  if (!cell) throw new Error('tune --quick does not try these settings: leave ARGON2_MEMORY_KIB, ARGON2_PASSES and HASH_THREADS as they are by default');
  return cell.perSecond;
}
