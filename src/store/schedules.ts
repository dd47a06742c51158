import { v4 as uuid } from 'uuid';
import type { Mysql, Queryable } from './mysql.js';

/** The right to do a task while no other node does. */
export interface Turn {
  /**
   * Says that the work goes on. Called at least every few seconds.
   * @throws TurnLost when another node has the turn by now
   */
  keep(): Promise<void>;
}

/** The holder was silent for too long and another node goes on with its work. */
export class TurnLost extends Error {}

export interface TurnOptions {
  signal?: AbortSignal;
  /** A holder that is silent for so long is taken for dead, in ms. */
  leaseMs?: number;
}

/** Longer than any pause of a healthy node; a killed one holds the others up for so long. */
const LEASE_MS = 30_000;

/**
 * Does `work` while no other node does this task: waits until the turn is free, and gives it back at the end. When the
 * turn is lost on the way, it waits and works again; so `work` must be safe to repeat.
 * @returns null when the signal came before the turn
 */
export async function inTurn<T>(mysql: Mysql, name: string, { signal, leaseMs = LEASE_MS }: TurnOptions, work: (turn: Turn) => Promise<T>): Promise<T | null> {
  const holder = uuid();
  while (signal?.aborted !== true) {
    if (!(await hold(mysql, name, holder, leaseMs))) {
      await pause(leaseMs / 10, signal);
      continue;
    }
    try {
      return await work(turnOf(mysql, name, holder, leaseMs));
    } catch (error) {
      if (!(error instanceof TurnLost)) throw error;
    } finally {
      await release(mysql, name, holder);
    }
  }
  return null;
}

function turnOf(mysql: Mysql, name: string, holder: string, leaseMs: number): Turn {
  let kept = performance.now();
  return {
    async keep() {
      if (performance.now() - kept < leaseMs / 4) return;
      if (!(await hold(mysql, name, holder, leaseMs))) throw new TurnLost();
      kept = performance.now();
    },
  };
}

/** Takes or renews a turn, by the clock of the database. */
async function hold(on: Queryable, name: string, holder: string, leaseMs: number): Promise<boolean> {
  await on.run('INSERT IGNORE INTO schedules (name) VALUES (?)', [name]);
  const { affected } = await on.run(
    `UPDATE schedules SET holder = ?, held_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND
     WHERE name = ? AND (holder IS NULL OR holder = ? OR held_until <= UTC_TIMESTAMP(3))`,
    [holder, Math.round(leaseMs * 1000), name, holder],
  );
  return affected === 1;
}

async function release(on: Queryable, name: string, holder: string): Promise<void> {
  await on.run('UPDATE schedules SET holder = NULL, held_until = NULL WHERE name = ? AND holder = ?', [name, holder]).catch(() => undefined);
}

/** The newest moment of the timetable for which the task is complete. */
export async function doneFor(on: Queryable, name: string): Promise<Date | null> {
  const [row] = await on.rows<{ doneFor: Date | null }>('SELECT done_for AS doneFor FROM schedules WHERE name = ?', [name]);
  return row?.doneFor ?? null;
}

export async function markDone(on: Queryable, name: string, moment: Date): Promise<void> {
  await on.run('UPDATE schedules SET done_for = ? WHERE name = ? AND (done_for IS NULL OR done_for < ?)', [moment, name, moment]);
}

export async function positionOf(on: Queryable, name: string): Promise<number> {
  const [row] = await on.rows<{ position: number }>('SELECT position FROM schedules WHERE name = ?', [name]);
  return row?.position ?? 0;
}

export async function setPosition(on: Queryable, name: string, position: number): Promise<void> {
  await on.run('UPDATE schedules SET position = ? WHERE name = ?', [position, name]);
}

/** Waits so long, in ms, or until the signal comes. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}
