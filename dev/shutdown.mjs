/**
 * How a command ends: by a signal, by its parent going away, by a failure or by
 * itself. Every way leads through the same orderly stop.
 */
import { endAll } from './child.mjs';

/** A failure the person can act on: shown as text, without a stack. */
export class Refusal extends Error {}

/**
 * @param {{onSignal: number, lastWords?: (code: number) => void}} how exit code after
 *   a signal, and what to print as the very last thing
 */
export function orderlyStop({ onSignal, lastWords = () => {} }) {
  let began = 0;

  const leave = (/** @type {number} */ code) => {
    lastWords(code);
    process.exit(code);
  };
  const stop = async (/** @type {number} */ code) => {
    if (began) return;
    began = Date.now();
    await endAll();
    leave(code);
  };
  const interrupt = (/** @type {string} */ name) => {
    if (!began) {
      if (name === 'SIGINT' && process.stderr.isTTY) process.stderr.write('\n');
      setTimeout(() => console.error('stopping; Ctrl-C again does not wait for it'), 1500).unref();
      void stop(onSignal);
    } else if (name === 'SIGINT' && Date.now() - began > 800) {
      // npm passes on the Ctrl-C that the terminal also sent us: only a later one is a second one.
      leave(onSignal || 130);
    }
  };

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => interrupt(name));
  // A closed terminal or pipe must not cut the stop short.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => interrupt('SIGPIPE'));
  process.on('uncaughtException', (error) => {
    if (!began) console.error(error instanceof Refusal ? `\n${error.message}` : error);
    void stop(1);
  });
  watchParent(() => interrupt('SIGHUP'));

  return { stop, isStopping: () => began > 0 };
}

/** npm that dies by itself (kill -9) leaves us behind; nobody could stop us then. */
/** @param {() => void} onGone */
function watchParent(onGone) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && onGone(), 500).unref();
}
