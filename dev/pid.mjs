/**
 * Knowing a process again: a pid alone may by now belong to somebody else, a pid
 * together with the moment it was born does not.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** @typedef {{pid: number, born: string}} Identity */

/**
 * @param {number} pid
 * @returns {string | null} null when no such process runs (a zombie counts as gone)
 */
export function born(pid) {
  if (existsSync('/proc/self/stat')) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // The name in parentheses may hold spaces; counted from behind it, state is 0 and start time 19.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8);
      return fields[0] === 'Z' ? null : `${boot}:${fields[19]}`;
    } catch {
      return null;
    }
  }
  const ps = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return ps.stdout?.trim() || null;
}

/** @param {number} pid @returns {Identity} */
export const identify = (pid) => ({ pid, born: born(pid) ?? '' });

/** @param {Identity | null} identity */
export const isAlive = (identity) => identity !== null && identity.born !== '' && born(identity.pid) === identity.born;

/**
 * @param {string} file
 * @returns {Identity | null}
 */
export function readIdentity(file) {
  try {
    const { pid, born: when } = JSON.parse(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && pid > 1 && typeof when === 'string' ? { pid, born: when } : null;
  } catch {
    return null;
  }
}

/**
 * Sends a signal to a process, or to a whole group by a negative pid. One that is
 * gone (ESRCH) or that root owns, like sudo (EPERM), is left to itself.
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
export function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
