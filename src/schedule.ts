import { CronJob, CronTime } from 'cron';
import type { Deps } from './deps.js';
import { doneFor, inTurn, markDone, pause, type Turn } from './store/schedules.js';

export interface Task {
  /** Its name in the table `schedules`. */
  name: string;
  /** A cron expression. */
  at: string;
  timeZone: string;
  /** Must be safe to repeat: a node that dies in it leaves the rest to the next one. */
  work: (turn: Turn, signal: AbortSignal) => Promise<unknown>;
  leaseMs?: number;
}

export interface Schedule {
  /** Stops the work at the next safe point and waits for it. */
  close(): Promise<void>;
}

/** How soon a task is tried again that failed, in ms. */
const RETRY_MS = 60_000;
/** A timer may fire a little before its time. */
const EARLY_MS = 1000;

/**
 * Does a task at each moment of its timetable, once over all nodes, and at the start when the newest moment was
 * missed. MySQL remembers the newest moment whose work is complete.
 */
export function startSchedule({ mysql, log }: Pick<Deps, 'mysql' | 'log'>, task: Task): Schedule {
  const stop = new AbortController();
  let again = false;
  let running: Promise<void> | null = null;

  async function catchUp(): Promise<void> {
    do {
      again = false;
      try {
        await once();
      } catch (error) {
        log.error({ err: error, task: task.name }, 'a task failed and will be tried again');
        await pause(RETRY_MS, stop.signal);
        again = true;
      }
    } while (again && !stop.signal.aborted);
  }

  async function once(): Promise<void> {
    if (await isDone(newestMoment(task, Date.now() + EARLY_MS))) return;
    await inTurn(mysql, task.name, { signal: stop.signal, ...(task.leaseMs === undefined ? {} : { leaseMs: task.leaseMs }) }, async (turn) => {
      // Another node may have done it while this one waited.
      const moment = newestMoment(task, Date.now() + EARLY_MS);
      if (await isDone(moment)) return;
      await task.work(turn, stop.signal);
      if (!stop.signal.aborted) await markDone(mysql, task.name, moment);
    });
  }

  const isDone = async (moment: Date): Promise<boolean> => ((await doneFor(mysql, task.name))?.getTime() ?? -Infinity) >= moment.getTime();

  function wake(): void {
    again = true;
    if (stop.signal.aborted) return;
    running ??= catchUp().finally(() => {
      running = null;
    });
  }

  // However late a busy process comes to it, a moment is not skipped.
  const job = CronJob.from({ cronTime: task.at, timeZone: task.timeZone, onTick: wake, start: true, threshold: Infinity });
  wake();
  return {
    async close() {
      await job.stop();
      stop.abort();
      await running;
    },
  };
}

/** Looks back so far, in ms, for the newest moment: the nearest first, since some timetables have one each second. */
const LOOK_BACK_MS = [2_000, 120_000, 2 * 3_600_000, 26 * 3_600_000, 8 * 86_400_000, 400 * 86_400_000];

/** The newest moment of a timetable that is not after `now`, in ms since the epoch. */
export function newestMoment({ at, timeZone }: Pick<Task, 'at' | 'timeZone'>, now: number): Date {
  const timetable = new CronTime(at, timeZone);
  const next = (from: number): number => timetable.getNextDateFrom(new Date(from), timeZone).toMillis();
  for (const back of LOOK_BACK_MS) {
    let newest = next(now - back);
    if (newest > now) continue;
    for (let later = next(newest); later <= now; later = next(newest)) newest = later;
    return new Date(newest);
  }
  throw new Error(`the timetable ${at} has no moment in the past year`);
}
