import type { Deps } from '../deps.js';
import { blankOrphans, lastEntry } from '../store/audit.js';
import { eraseSome, MOST_ROWS, type Erasure } from '../store/personal-data.js';
import { inTurn, pause, positionOf, setPosition, type Turn, type TurnOptions } from '../store/schedules.js';
import { countDue, dueAccounts } from '../store/users.js';
import { purgeAccount } from './purge.js';
import { OTHER_LAPSES, USER_TABLES } from './user-data.js';

export type RetentionNeeds = Pick<Deps, 'mysql' | 'keyring' | 'config' | 'log'>;

export interface RetentionOptions extends TurnOptions {
  /** Counts what is due and changes nothing. */
  dryRun?: boolean;
  /** Told before the first and after each account. */
  progress?: (done: number, total: number) => void;
  /** The share of its time that a run works, from 0 to 1; the rest it pauses, so that logins are not hurt. */
  share?: number;
}

export interface RetentionResult {
  /** Accounts that were due when the run began, and how many of them this run purged. */
  due: number;
  purged: number;
}

/** The task's name in `schedules`. */
export const RETENTION = 'retention';

/** Some 50 accounts a second: 100,000 take half an hour of the night, and logins on the same node hardly notice (bench/retention.ts). */
const SHARE = 0.2;
/** Accounts whose row another transaction holds are tried again so often, so long apart. */
const PASSES = 3;
const BETWEEN_PASSES_MS = 1000;

/**
 * Purges every account that is due, then erases what lapsed by itself. Waits while another node does the same. Safe to
 * stop or kill at any point: what is done is done, the rest is found again.
 * @throws ApiError UNAVAILABLE
 */
export async function runRetention(needs: RetentionNeeds, options: RetentionOptions = {}): Promise<RetentionResult> {
  if (options.dryRun) return { due: await countDue(needs.mysql, needs.config.retentionDays), purged: 0 };
  return (await inTurn(needs.mysql, RETENTION, options, (turn) => retain(needs, turn, options))) ?? { due: 0, purged: 0 };
}

/** One run, by the holder of the turn. */
export async function retain(needs: RetentionNeeds, turn: Turn, options: RetentionOptions = {}): Promise<RetentionResult> {
  const { mysql, config, log } = needs;
  const started = performance.now();
  const pace = paced(options.share ?? SHARE, turn, options.signal);
  const due = await countDue(mysql, config.retentionDays);
  let purged = 0;
  options.progress?.(0, due);

  /** Goes through the due accounts once, and gives how many another transaction held. */
  async function pass(): Promise<number> {
    let held = 0;
    for await (const id of each(needs, options.signal)) {
      if (!(await pace(() => purgeAccount(needs, id)))) {
        held += 1;
        continue;
      }
      purged += 1;
      options.progress?.(purged, Math.max(due, purged));
    }
    return held;
  }

  for (let passes = 1; (await pass()) > 0 && passes < PASSES; passes += 1) await pause(BETWEEN_PASSES_MS, options.signal);
  const swept = await sweep(needs, pace, options.signal);
  log.info({ due, purged, swept, ms: Math.round(performance.now() - started) }, options.signal?.aborted ? 'retention was stopped' : 'retention is done');
  return { due, purged };
}

async function* each({ mysql, config }: RetentionNeeds, signal?: AbortSignal): AsyncGenerator<string> {
  for (let after = { deletedAt: new Date(0), id: '' }; ; ) {
    const page = await dueAccounts(mysql, config.retentionDays, after);
    for (const { id } of page) {
      if (signal?.aborted) return;
      yield id;
    }
    const last = page.at(-1);
    if (!last) return;
    after = last;
  }
}

type Pace = <T>(work: () => Promise<T>) => Promise<T>;

/** Keeps the turn, and rests after each piece of work in proportion to the time it took: a slow database gets longer rests. */
function paced(share: number, turn: Turn, signal?: AbortSignal): Pace {
  return async (work) => {
    await turn.keep();
    const started = performance.now();
    const result = await work();
    const rest = ((performance.now() - started) * (1 - share)) / share;
    if (rest > 0) await pause(rest, signal);
    return result;
  };
}

/** Erases what ended long ago, whoever it belongs to, and gives how many rows. */
async function sweep({ mysql }: RetentionNeeds, pace: Pace, signal?: AbortSignal): Promise<number> {
  let swept = 0;
  const personal = Object.entries(USER_TABLES).flatMap(([table, { lapse = [] }]) => lapse.map((one) => ({ table, ...one })));
  const others = OTHER_LAPSES.map((one) => ({ ...one, erasure: GONE }));
  for (const { table, where, erasure } of [...personal, ...others]) {
    for (let rows = MOST_ROWS; rows === MOST_ROWS && !signal?.aborted; swept += rows) rows = await pace(() => eraseSome(mysql, table, erasure, where));
  }
  return swept + (await sweepAudit(mysql, pace, signal));
}

/**
 * Blanks audit entries whose account is gone: a request that was under way during the purge may have written one
 * after it. Looks through what is new since the run before the last, since entries are not committed in order.
 */
async function sweepAudit(mysql: RetentionNeeds['mysql'], pace: Pace, signal?: AbortSignal): Promise<number> {
  const newest = await lastEntry(mysql);
  let swept = 0;
  for (let after: number | null = await positionOf(mysql, RETENTION); after !== null; ) {
    if (signal?.aborted) return swept;
    const from: number = after;
    const looked = await pace(() => blankOrphans(mysql, from, AUDIT));
    swept += looked.blanked;
    after = looked.last;
  }
  await setPosition(mysql, RETENTION, newest);
  return swept;
}

const GONE: Erasure = { how: 'delete' };
const AUDIT = USER_TABLES['audit_log']!.purge;
