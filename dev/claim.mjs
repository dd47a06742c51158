/**
 * One run at a time per folder: a file that names its holder. A holder that was
 * killed does not block the next run.
 */
import { linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identify, isAlive, readIdentity } from './pid.mjs';

const held = new Set();

process.on('exit', () => {
  for (const file of held) rmSync(file, { force: true });
});

/**
 * @param {string} file
 * @returns {number | null} null when it is ours now, or the pid of the one who has it
 */
export function claim(file) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}`;
  // A link appears with its content, so nobody reads a half-written claim.
  writeFileSync(mine, JSON.stringify(identify(process.pid)), { mode: 0o600 });
  try {
    for (let tries = 0; tries < 10; tries++) {
      if (tryLink(mine, file)) {
        held.add(file);
        return null;
      }
      const holder = readIdentity(file);
      if (holder && isAlive(holder)) return holder.pid;
      discard(file, `${mine}.stale`);
    }
    throw new Error(`cannot claim ${file}`);
  } finally {
    rmSync(mine, { force: true });
  }
}

/** @param {string} file */
export function release(file) {
  if (held.delete(file)) rmSync(file, { force: true });
}

/**
 * @param {string} file
 * @param {(pid: number) => void} onWait called once when somebody else has it
 */
export async function claimWaiting(file, onWait) {
  let holder = claim(file);
  if (holder !== null) onWait(holder);
  while (holder !== null) {
    await sleep(200);
    holder = claim(file);
  }
}

/** @param {string} from @param {string} to */
function tryLink(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves a dead claim away; if it was a live one that had just replaced it, puts it back. */
/** @param {string} file @param {string} aside */
function discard(file, aside) {
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (isAlive(readIdentity(aside))) tryLink(aside, file);
  rmSync(aside, { force: true });
}
