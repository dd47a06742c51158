import { Command, InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../config/load.js';
import { Failure, report } from './outcome.js';
import { withProgress, type Progress } from './progress.js';
import { choose, type Wish } from './tune/capacity.js';
import { lookOf } from './tune/chart.js';
import { threadCounts } from './tune/grid.js';
import { check, describeMachine, GROUPS, listenForOthers, measureCells, QUICK, THOROUGH, type Tell } from './tune/measure.js';
import { asJson, asText, type Found } from './tune/report.js';
import { openStand } from './tune/stand.js';
import { KINDS, type Kind } from './tune/stores.js';

const HELP = `
Whole logins over HTTP are measured: the service itself, with accounts whose passwords were hashed at each of the
costs that OWASP rates equal, and with one to twice as many hashing threads as there are cores. It recommends
HASH_THREADS, ARGON2_MEMORY_KIB and ARGON2_PASSES, says how many logins per second to expect, and tries that out
with logins at random moments. Run it while the machine has nothing else to do.

MySQL and Redis (--stores):
  own    private servers, when their programs are on this machine: the default then
  given  MYSQL_URL, with a database of its own that is dropped at the end, and REDIS_URL, which no service may use
  none   neither: the figures are what the rest of a login allows

Exit codes: 0 recommended, 1 not measured or the wish cannot be met, 2 wrong usage.`;

/** Fits 80 columns; the rate is that of the last measurement. */
const BAR = 'tune {bar} {percentage}% {memory} MiB x {passes}, {threads} threads, {rate}/s';

interface Options extends Wish {
  isQuick: boolean;
  stores: Kind | null;
}

export function tuneCommand(): Command {
  return new Command('tune')
    .description('measure this machine, and recommend the number of hashing threads and the cost of a hash')
    .option('--target-ms <ms>', 'what 99 of 100 logins are to take at most', readPositive, 250)
    .option('--logins-per-s <n>', 'logins per second that are to be possible at that; without it as many as possible', readPositive)
    .option('--quick', 'some numbers of threads only, each measured briefly: half a minute instead of two')
    .addOption(new Option('--stores <which>', 'MySQL and Redis to measure with').choices(KINDS))
    .addHelpText('after', HELP)
    .action(async ({ targetMs, loginsPerS, quick, stores }: { targetMs: number; loginsPerS?: number; quick?: boolean; stores?: Kind }, command: Command) => {
      const wish = { targetMs, loginsPerS: loginsPerS ?? null };
      const found = await tune({ ...wish, isQuick: quick ?? false, stores: stores ?? null }).catch((error: unknown) => {
        throw error instanceof ConfigError ? new Failure(error.message, { cause: error }) : error;
      });
      report(command, asText(found, wish, lookOf(process.stdout, process.env)), asJson(found, wish));
      if (!found.choice) throw new Failure(`no cost stays within ${targetMs} ms, not even for a login alone`);
      if (!found.choice.isEnough) throw new Failure(`this machine does not reach ${loginsPerS!} logins/s within ${targetMs} ms`);
    });
}

function readPositive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 1e6)) throw new InvalidArgumentError('It is to be a number above 0.');
  return value;
}

async function tune(options: Options): Promise<Found> {
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = closers.pop(); close; close = closers.pop()) await close().catch((error: unknown) => process.stderr.write(`while stopping: ${String(error)}\n`));
  };
  let isInterrupted = false;
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) {
    process.on(signal, () => {
      if (isInterrupted) return;
      isInterrupted = true;
      void closeAll().then(() => process.exit(code));
    });
  }
  try {
    return await withProgress(BAR, (progress) => measure(options, progress, closers));
  } catch (error) {
    // What breaks while everything is being stopped is no news.
    if (isInterrupted) return await new Promise<never>(() => undefined);
    throw error;
  } finally {
    if (!isInterrupted) await closeAll();
  }
}

async function measure({ isQuick, stores, ...wish }: Options, progress: Progress, closers: (() => Promise<unknown>)[]): Promise<Found> {
  const machine = describeMachine();
  const others = await listenForOthers();
  const stand = await openStand(stores, GROUPS, closers);
  const pace = isQuick ? QUICK : THOROUGH;
  // The last step is to try the recommendation.
  const tell: Tell = (done, total, { cost, threads, perSecond }) =>
    progress.update(done, total + 1, { memory: Math.ceil(cost.memoryKib / 1024), passes: cost.passes, threads, rate: Math.round(perSecond) });
  const cells = await measureCells(stand, threadCounts(machine.cores, isQuick), pace, tell);
  const choice = choose(cells, wish);
  const checked = choice && (await check(stand, choice, wish.targetMs, pace));
  return { machine, others, engine: stand.engine, stores: stand.stores, cells, choice, checked };
}
