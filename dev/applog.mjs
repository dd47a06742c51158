/**
 * The service's log for people: the file keeps JSON lines, the terminal gets one
 * short line for each, with particulars only for warnings and errors.
 */
import { closeSync, openSync, readSync } from 'node:fs';

/** @type {Record<string, number>} colours */
const LEVELS = { warn: 33, error: 31, fatal: 31 };
const HIDDEN = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err', 'requestId', 'stack']);

/**
 * @param {string} line
 * @param {(code: number, text: string) => string} paint
 * @returns {string | null} null for an empty line
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
  const colour = LEVELS[entry.level];
  const time = String(entry.time ?? '').slice(11, 19);
  const reason = entry.err?.message ? `: ${entry.err.message}` : '';
  // What went well needs no particulars here.
  const names = Object.keys(entry).filter((name) => (colour ? !HIDDEN.has(name) : ['action', 'outcome', 'code'].includes(name)));
  const fields = names.map((name) => `${name}=${typeof entry[name] === 'string' ? entry[name] : JSON.stringify(entry[name])}`);
  const parts = [paint(2, time), colour ? paint(colour, entry.level) : '', `${entry.msg ?? ''}${reason}`, fields.length ? paint(2, fields.join(' ')) : ''];
  return parts.filter(Boolean).join(' ');
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
