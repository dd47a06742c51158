/**
 * The service's log for people: all of it stays in the file as JSON lines, the
 * terminal gets requests, warnings and errors, one short line each.
 */
import { closeSync, openSync, readSync } from 'node:fs';

const LEVELS = { warn: 33, error: 31, fatal: 31 };
const HIDDEN = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err', 'v', 'name']);

/**
 * @param {string} line
 * @param {(code: number, text: string) => string} paint
 * @returns {string | null} null for what a newcomer need not see
 */
export function forPeople(line, paint) {
  /** @type {Record<string, any>} */
  let entry;
  try {
    entry = JSON.parse(line);
  } catch {
    // A stack trace or a word from Node itself: rare and never noise.
    return line.trim() ? line : null;
  }
  if (entry === null || typeof entry !== 'object') return line;
  const time = paint(2, String(entry.time ?? '').slice(11, 19));
  const colour = LEVELS[/** @type {keyof typeof LEVELS} */ (entry.level)];
  if (colour) {
    const fields = Object.entries(entry).filter(([name]) => !HIDDEN.has(name)).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
    const reason = entry.err?.message ? `: ${entry.err.message}` : '';
    return `${time} ${paint(colour, entry.level)} ${entry.msg ?? ''}${reason} ${paint(2, fields.join(' '))}`.trimEnd();
  }
  if (entry.method && entry.path && entry.status && !entry.path.startsWith('/health/')) {
    const took = entry.ms ?? entry.durationMs ?? entry.responseTime;
    const code = entry.status >= 500 ? 31 : entry.status >= 400 ? 33 : 32;
    return `${time} ${paint(code, entry.status)} ${entry.method} ${entry.path}${took === undefined ? '' : paint(2, ` ${Math.round(took)} ms`)}${entry.code ? paint(2, ` ${entry.code}`) : ''}`;
  }
  return null;
}

/**
 * Reads what a file gains, line by line, until told to stop.
 * @param {string} file
 * @param {(line: string) => void} onLine
 * @returns {() => void} reads the rest and stops
 */
export function follow(file, onLine) {
  const fd = openSync(file, 'r');
  const chunk = Buffer.alloc(64 * 1024);
  let rest = Buffer.alloc(0);
  const read = () => {
    for (let n = readSync(fd, chunk); n > 0; n = readSync(fd, chunk)) {
      rest = Buffer.concat([rest, chunk.subarray(0, n)]);
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        onLine(rest.subarray(0, end).toString());
        rest = rest.subarray(end + 1);
      }
    }
  };
  const timer = setInterval(read, 150);
  return () => {
    clearInterval(timer);
    read();
    closeSync(fd);
  };
}
