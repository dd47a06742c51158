/**
 * Runs compiled test files, each in a Node of its own, and reads the TAP they print.
 * Plain Node instead of the tap command: that one rebuilds itself inside node_modules
 * for a changed plugin list and takes a second per run; the tests do not notice.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { end, start } from './child.mjs';

/** @typedef {{name: string, detail: string}} Failure */
/** @typedef {{file: string, passed: number, skipped: number, failures: Failure[], noise: string, seconds: number, isSecond: boolean}} Verdict */

/** How long a file may go on after its tests are over, or its own time limit: something that it left open keeps it. */
const HANGS_MS = 30_000;

/** Files whose subject is time or load run when nothing else does. */
const isAlone = (/** @type {string} */ file) => /\.alone\.test\.m?js$/.test(basename(file));
/** Files that look at what all the others did. */
export const isLast = (/** @type {string} */ file) => /\.last\.test\.m?js$/.test(basename(file));
/** Files that count who wins: one too many is a fault, however rare. */
const isRace = (/** @type {string} */ file) => /race/.test(basename(file));
/** Files that mostly wait say so in their first line; some of them run beside the others. */
const isWaiting = (/** @type {string} */ file) => /^\/\/ Mostly waits\b/.test(readFileSync(file, 'utf8'));

/**
 * @param {string[]} files
 * @param {object} how
 * @param {string} how.cwd
 * @param {string} how.home where it is noted what runs, for the case that we are killed
 * @param {NodeJS.ProcessEnv} how.env
 * @param {number} how.jobs files that run at once
 * @param {number} how.waiting files that run beside them when they mostly wait
 * @param {number} how.limitMs time that a file has for itself
 * @param {boolean} how.secondTry whether a file that failed beside others is run once more when nothing else runs
 * @param {() => Promise<void>} how.beside other work, done by one of the jobs before it runs files
 * @param {(running: string[]) => void} how.onChange
 * @param {(verdict: Verdict, isFinal: boolean) => void} how.onVerdict
 */
export async function runSuite(files, { cwd, home, env, jobs, waiting, limitMs, secondTry, beside, onChange, onVerdict }) {
  // After the packages are there, hence not at the top of the file.
  const { Parser } = await import('tap-parser');
  const running = new Set();
  /** @type {string[]} */
  const again = [];
  let count = 0;
  const one = async (/** @type {string} */ file, isSecond = false) => {
    running.add(file);
    onChange([...running]);
    const verdict = await runFile(file, { cwd, env, limitMs, parser: new Parser(), isSecond, record: join(home, `${basename(file)}-${++count}.pid.json`) });
    running.delete(file);
    const isFinal = isSecond || !secondTry || isRace(file) || verdict.failures.length === 0;
    if (!isFinal) again.push(file);
    onVerdict(verdict, isFinal);
    onChange([...running]);
  };
  const drain = async (/** @type {string[]} */ lane, before = async () => {}) => {
    await before();
    for (let file = lane.shift(); file !== undefined; file = lane.shift()) await one(file);
  };
  const together = files.filter((file) => !isAlone(file) && !isLast(file));
  const patient = waiting > 0 ? together.filter(isWaiting) : [];
  const working = together.filter((file) => !patient.includes(file));
  const lanes = (/** @type {number} */ n, /** @type {(first: boolean) => Promise<void>} */ lane) => Array.from({ length: n }, (_, i) => lane(i === 0));
  // Jobs that have no more work help with what waits.
  await Promise.all([
    ...lanes(Math.max(1, jobs), (isFirst) => drain(working, isFirst ? beside : undefined).then(() => drain(patient))),
    ...lanes(waiting, () => drain(patient)),
  ]);
  for (const file of files.filter(isAlone)) await one(file);
  for (const file of again.splice(0)) await one(file, true);
  for (const file of files.filter(isLast)) await one(file);
  for (const file of again) await one(file, true);
}

/**
 * @param {string} file
 * @param {{cwd: string, env: NodeJS.ProcessEnv, limitMs: number, parser: any, isSecond: boolean, record: string}} how
 * @returns {Promise<Verdict>}
 */
function runFile(file, { cwd, env, limitMs, parser, isSecond, record }) {
  /** @type {Verdict} */
  const verdict = { file, passed: 0, skipped: 0, failures: [], noise: '', seconds: 0, isSecond };
  const began = performance.now();
  collect(parser, verdict);
  return new Promise((settle) => {
    const child = start(process.execPath, [file], { cwd, env, record, stdio: ['ignore', 'pipe', 'pipe'], grace: 5000 });
    let late = '';
    const stop = (/** @type {string} */ why) => {
      late = why;
      void end(child);
    };
    let limit = setTimeout(stop, limitMs + HANGS_MS, `it did not end within ${limitMs / 1000} s and was stopped`);
    // It stands behind the last test.
    parser.on('plan', () => {
      if (verdict.passed + verdict.failures.length + verdict.skipped === 0) return;
      clearTimeout(limit);
      limit = setTimeout(stop, HANGS_MS, `its tests were over, yet it did not end for ${HANGS_MS / 1000} s and was stopped`);
    });
    const text = new StringDecoder();
    child.stdout?.on('data', (chunk) => parser.write(text.write(chunk)));
    child.stderr?.on('data', (chunk) => {
      verdict.noise += chunk;
    });
    // What was printed and is not TAP.
    parser.on('extra', (/** @type {string} */ line) => {
      verdict.noise += line;
    });
    child.once('close', (code, killed) => {
      clearTimeout(limit);
      parser.end();
      verdict.seconds = (performance.now() - began) / 1000;
      if (late) verdict.failures.push({ name: 'the file itself', detail: late });
      else if (!(code === 0 && parser.ok) && verdict.failures.length === 0) {
        const how = killed ? `was ended by ${killed}` : `ended with exit code ${code}, its plan ${parser.ok ? 'kept' : 'not kept'}`;
        verdict.failures.push({ name: 'the file itself', detail: `it ${how}` });
      }
      settle({ ...verdict, failures: verdict.failures.map((one) => ({ ...one, detail: inSources(one.detail, cwd) })), noise: inSources(verdict.noise, cwd) });
    });
  });
}

/**
 * Counts assertions, not the points that close a group of them; a group counts only
 * when it fails although all inside it passed.
 * @param {any} parser
 * @param {Verdict} verdict
 */
function collect(parser, verdict) {
  let before = verdict.failures.length;
  parser.on('child', (/** @type {any} */ child) => {
    before = verdict.failures.length;
    collect(child, verdict);
  });
  parser.on('bailout', (/** @type {string} */ reason) => verdict.failures.push({ name: 'bail out', detail: reason }));
  parser.on('assert', (/** @type {any} */ point) => {
    const isGroup = point.closingTestPoint === true;
    if (point.skip || point.todo) verdict.skipped += 1;
    else if (point.ok) verdict.passed += isGroup ? 0 : 1;
    else if (!isGroup || verdict.failures.length === before) verdict.failures.push({ name: point.fullname ?? point.name, detail: describe(point.diag) });
  });
}

/**
 * Names the lines of the TypeScript where a text has those of the build. Node could (--enable-source-maps), but takes
 * a tenth of a second for it in each of the files, of which few ever fail.
 * @param {string} text
 * @param {string} cwd
 */
function inSources(text, cwd) {
  return text.replace(/(?:file:\/\/)?([\w@./-]*\bdist\/[\w./-]+\.js):(\d+):(\d+)/g, (place, file, line, column) => {
    try {
      const path = resolve(cwd, file);
      const { originalSource, originalLine, originalColumn } = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8'))).findEntry(line - 1, column - 1);
      return `${relative(cwd, resolve(dirname(path), originalSource))}:${originalLine + 1}:${originalColumn + 1}`;
    } catch {
      return place;
    }
  });
}

/** @param {Record<string, any> | null} diag */
function describe(diag) {
  if (!diag) return '';
  const { at, source, diff, stack, message, found, wanted, ...rest } = diag;
  const place = at?.fileName ? `${at.fileName}:${at.lineNumber}:${at.columnNumber}` : '';
  const shown = (/** @type {unknown} */ value) => (typeof value === 'string' ? value : JSON.stringify(value));
  const parts = [
    place,
    source?.trimEnd(),
    message,
    diff?.trimEnd(),
    !diff && wanted !== undefined ? `wanted ${shown(wanted)}\nfound  ${shown(found)}` : '',
    stack && !diff ? stack.trimEnd() : '',
    ...Object.entries(rest).filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => `${name}: ${shown(value)}`),
  ];
  return parts.filter(Boolean).join('\n');
}
