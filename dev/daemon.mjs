/**
 * A server in the background: its output goes to a log file (so it outlives our
 * own death without blocking), its identity to a record, and it counts as ready
 * when its own log says so. Nobody else's server can be mistaken for it.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { end, start } from './child.mjs';
import { isAlive, readIdentity, signal } from './pid.mjs';

/**
 * @typedef {object} Daemon
 * @property {number} pid
 * @property {() => Promise<void>} stop
 * @property {Promise<string>} ended fulfilled with a sentence when it ends, whoever wanted it
 */

/** A server that did not come up; carries the end of its log. */
export class StartFailure extends Error {
  /** @param {string} name @param {string} log @param {string} file */
  constructor(name, log, file) {
    const tail = log.trim().split('\n').slice(-12).map((line) => `  ${line}`).join('\n');
    super(`${name} did not start. The end of ${file}:\n${tail}`);
    this.portTaken = /address already in use|EADDRINUSE/i.test(log);
  }
}

/**
 * @param {object} plan
 * @param {string} plan.home folder of log and record
 * @param {string} plan.name
 * @param {string} plan.command
 * @param {string[]} plan.args
 * @param {string} plan.cwd
 * @param {NodeJS.ProcessEnv} [plan.env]
 * @param {(log: string) => boolean | Promise<boolean>} plan.isReady
 * @param {number} [plan.patience] milliseconds until it has to be ready
 * @returns {Promise<Daemon>}
 */
export async function startDaemon({ home, name, command, args, cwd, env, isReady, patience = 60_000 }) {
  const log = join(home, `${name}.log`);
  const out = openSync(log, 'w', 0o600);
  const child = start(command, args, { cwd, env: env ?? process.env, stdio: ['ignore', out, out], record: join(home, `${name}.pid.json`) });
  closeSync(out);
  let failure = '';
  child.once('error', (error) => {
    failure = error.message;
  });

  /** @type {Promise<string>} */
  const ended = new Promise((resolve) => {
    child.once('exit', (code, killed) => resolve(`${name} ended ${killed ? `by ${killed}` : `with exit code ${code}`}, see ${log}`));
  });
  const isGone = () => failure !== '' || child.exitCode !== null || child.signalCode !== null;
  const deadline = Date.now() + patience;
  while (!(await isReady(readFileSync(log, 'utf8')))) {
    if (isGone() || Date.now() > deadline) {
      if (!isGone()) await end(child);
      throw new StartFailure(name, failure + readFileSync(log, 'utf8'), log);
    }
    await sleep(20);
  }
  return { pid: /** @type {number} */ (child.pid), ended, stop: () => end(child) };
}

/**
 * Has the scheduler prefer a server to the programs of other sessions (autogroups, see sched(7)). It shares the cores
 * out by session, so that the niceness of hashing threads means nothing to servers outside the service's own, and a
 * server that needs little waits for a tenth of a second and more while those threads keep all cores busy.
 * @param {number} pid
 */
export function prefer(pid) {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, '-20');
  } catch {
    // Not root, or no such scheduling: then it has to wait with the others.
  }
}

/**
 * Ends what a run that was killed left behind in this folder, the service before its
 * databases.
 * @param {string} home
 * @param {(line: string) => void} say
 */
export async function reap(home, say) {
  const records = existsSync(home) ? readdirSync(home).filter((file) => file.endsWith('.pid.json')) : [];
  const rank = (/** @type {string} */ file) => (file.startsWith('mysql') ? 2 : file.startsWith('redis') ? 1 : 0);
  for (const file of records.sort((a, b) => rank(a) - rank(b))) {
    const identity = readIdentity(join(home, file));
    if (identity && isAlive(identity)) {
      say(`stopping ${basename(file, '.pid.json')} of a run that was killed (pid ${identity.pid})`);
      signal(identity.pid, 'SIGTERM');
      signal(identity.pid, 'SIGCONT');
      const deadline = Date.now() + 20_000;
      while (isAlive(identity)) {
        if (Date.now() > deadline) signal(identity.pid, 'SIGKILL');
        await sleep(50);
      }
      // Each one led a group of its own: what it had started goes too.
      signal(-identity.pid, 'SIGKILL');
    }
    rmSync(join(home, file), { force: true });
  }
}
