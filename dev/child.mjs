/**
 * Every program we start: in a group of its own, so that Ctrl-C in the terminal
 * reaches only us and we decide the order in which things stop.
 */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { identify, signal } from './pid.mjs';

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {import('node:child_process').SpawnOptions} SpawnOptions */

/** @type {Map<ChildProcess, number>} each with its grace in milliseconds, in the order of their start */
const live = new Map();
let closed = false;

// The last resort for exits that nobody foresaw; an orderly stop leaves nothing for it.
process.on('exit', () => {
  for (const [child, grace] of live) if (child.pid && grace < Infinity) signal(-child.pid, 'SIGKILL');
});

/**
 * @param {string} command
 * @param {string[]} args
 * @param {SpawnOptions & {grace?: number, record?: string}} [options]
 *   grace: how long it may take to end before it is killed; Infinity: it never is.
 *   record: a file that names it while it runs, so that a later run can end it when we were killed
 */
export function start(command, args, { grace = 20_000, record, ...options } = {}) {
  if (closed) throw new Error('stopping');
  const child = spawn(command, args, { ...options, detached: true });
  live.set(child, grace);
  if (record && child.pid) writeFileSync(record, JSON.stringify(identify(child.pid)), { mode: 0o600 });
  child.once('exit', () => {
    live.delete(child);
    if (record) rmSync(record, { force: true });
    // Whatever it started and did not end goes with it.
    if (child.pid) signal(-child.pid, 'SIGKILL');
  });
  child.once('error', () => live.delete(child));
  return child;
}

/** @param {ChildProcess} child */
const isGone = (child) => child.exitCode !== null || child.signalCode !== null || child.pid === undefined;

/**
 * Asks a program to end and insists when its grace is over.
 * @param {ChildProcess} child
 * @returns {Promise<void>}
 */
export function end(child) {
  if (isGone(child)) return Promise.resolve();
  const grace = live.get(child) ?? 0;
  return new Promise((resolve) => {
    const pid = /** @type {number} */ (child.pid);
    const insist = grace < Infinity ? setTimeout(() => signal(-pid, 'SIGKILL'), grace) : undefined;
    child.once('exit', () => {
      clearTimeout(insist);
      resolve();
    });
    signal(pid, 'SIGTERM');
    signal(pid, 'SIGCONT');
  });
}

/** Ends what still runs, the youngest first, and lets nothing new start. */
export async function endAll() {
  closed = true;
  for (const child of [...live.keys()].reverse()) await end(child);
}

/**
 * Runs a program to its end and keeps what it printed.
 * @param {string} command
 * @param {string[]} args
 * @param {SpawnOptions & {grace?: number, input?: string, onOutput?: (text: string) => void}} [options]
 * @returns {Promise<{code: number, output: string}>}
 */
export function run(command, args, { input, onOutput = () => {}, ...options } = {}) {
  return new Promise((resolve) => {
    const child = start(command, args, { ...options, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    let output = '';
    const keep = (/** @type {Buffer} */ chunk) => {
      output += chunk.toString();
      onOutput(chunk.toString());
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    // A program that ends early closes its input; its exit code tells more than our EPIPE.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
    child.once('error', (error) => resolve({ code: 127, output: error.message }));
    child.once('close', (code, killed) => resolve({ code: code ?? (killed ? 128 : 1), output }));
  });
}
