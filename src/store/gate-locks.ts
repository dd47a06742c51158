import { QUIET_DAYS, type Source } from './login-accounts.js';
import { marks, type Queryable, type Tx } from './mysql.js';

/** A lock of the gate: how long, and which in a row; 0 leaves that as it is. */
export interface Lock {
  ms: number;
  step: number;
}

/**
 * Writes a lock of the gate, unless a longer one stands; gate_locked_until tells it from one that an operator sets.
 * Gives whether no lock stood before: true once for each lock, however many nodes write it.
 */
export async function lockByGate(tx: Tx, id: string, { ms, step }: Lock): Promise<boolean> {
  const [row] = await tx.rows<{ wasOpen: unknown }>('SELECT locked_until IS NULL OR locked_until <= UTC_TIMESTAMP(3) AS wasOpen FROM users WHERE id = ? FOR UPDATE', [id]);
  await tx.run(
    `UPDATE users SET lock_step = CASE WHEN ? > 0 THEN ? WHEN locked_until = gate_locked_until THEN lock_step ELSE 0 END,
       locked_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, gate_locked_until = locked_until
     WHERE id = ? AND (locked_until IS NULL OR locked_until < UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)`,
    [step, step, ms * 1000, id, ms * 1000],
  );
  return Boolean(row?.wasOpen);
}

export async function lockSource(on: Queryable, id: string, source: Source, { ms, step }: Lock): Promise<void> {
  await on.run('UPDATE login_sources SET locked_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, lock_step = ? WHERE user_id = ? AND network = ? AND device = ?', [ms * 1000, step, id, source.network, source.device]);
}

/** Writes a lock of an address that has no account. */
export async function lockStranger(on: Queryable, identity: Buffer, { ms, step }: Lock): Promise<void> {
  await on.run(
    `INSERT INTO stranger_locks (identity, lock_step, locked_until) VALUES (?, ?, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)
     ON DUPLICATE KEY UPDATE lock_step = ?, locked_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND`,
    [identity, step, ms * 1000, step, ms * 1000],
  );
}

/** When a lock of an address without an account counts no longer. */
export const STRANGER_LAPSED = `locked_until < UTC_TIMESTAMP(3) - INTERVAL ${QUIET_DAYS} DAY`;

/** Removes a few locks that count no longer: more than one for each that is written keeps the table small whatever is tried. */
export async function dropLapsedStrangers(on: Queryable): Promise<void> {
  await on.run(`DELETE FROM stranger_locks WHERE ${STRANGER_LAPSED} ORDER BY locked_until LIMIT 4`);
}

/** Forgets which lock in a row the last one was, of accounts whose locks are over. */
export async function forgetLocks(on: Queryable, ids: string[]): Promise<void> {
  await on.run(`UPDATE users SET lock_step = 0 WHERE id IN (${marks(ids.length)}) AND locked_until <= UTC_TIMESTAMP(3)`, ids);
}
