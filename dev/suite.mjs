/**
 * Runs compiled test files, each in a Node of its own, and reads the TAP they print.
 * Plain Node instead of the tap command: that one rebuilds itself inside node_modules
 * for a changed plugin list and takes a second per run; the tests do not notice.
 */
import { basename, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { end, start } from './child.mjs';

/** @typedef {{name: string, detail: string}} Failure */
/** @typedef {{file: string, passed: number, skipped: number, failures: Failure[], noise: string, seconds: number}} Verdict */

/** A file that hangs beyond its own time limits. */
const FILE_LIMIT_MS = 10 * 60_000;

/** Files whose subject is time or load run when nothing else does. */
const isAlone = (/** @type {string} */ file) => /\.alone\.test\.m?js$/.test(basename(file));
/** Files that look at what all the others did. */
export const isLast = (/** @type {string} */ file) => /\.last\.test\.m?js$/.test(basename(file));

/**
 * @param {string[]} files
 * @param {object} how
 * @param {string} how.cwd
 * @param {string} how.home where it is noted what runs, for the case that we are killed
 * @param {NodeJS.ProcessEnv} how.env
 * @param {number} how.jobs
 * @param {(running: string[]) => void} how.onChange
 * @param {(verdict: Verdict) => void} how.onVerdict
 */
export async function runSuite(files, { cwd, home, env, jobs, onChange, onVerdict }) {
  // After the packages are there, hence not at the top of the file.
  const { Parser } = await import('tap-parser');
  const running = new Set();
  let count = 0;
  const one = async (/** @type {string} */ file) => {
    running.add(file);
    onChange([...running]);
    const verdict = await runFile(file, { cwd, env, parser: new Parser(), record: join(home, `${basename(file)}-${++count}.pid.json`) });
    running.delete(file);
    onVerdict(verdict);
    onChange([...running]);
  };
  const together = files.filter((file) => !isAlone(file) && !isLast(file));
  await Promise.all(Array.from({ length: Math.max(1, jobs) }, async () => {
    for (let file = together.shift(); file !== undefined; file = together.shift()) await one(file);
  }));
  for (const file of [...files.filter(isAlone), ...files.filter(isLast)]) await one(file);
}

/**
 * @param {string} file
 * @param {{cwd: string, env: NodeJS.ProcessEnv, parser: any, record: string}} how
 * @returns {Promise<Verdict>}
 */
function runFile(file, { cwd, env, parser, record }) {
  /** @type {Verdict} */
  const verdict = { file, passed: 0, skipped: 0, failures: [], noise: '', seconds: 0 };
  const began = performance.now();
  collect(parser, verdict);
  return new Promise((resolve) => {
    const child = start(process.execPath, ['--enable-source-maps', file], { cwd, env, record, stdio: ['ignore', 'pipe', 'pipe'], grace: 5000 });
    let late = false;
    const limit = setTimeout(() => {
      late = true;
      void end(child);
    }, FILE_LIMIT_MS);
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
      const sound = code === 0 && parser.ok;
      if (!sound && verdict.failures.length === 0) {
        const how = late ? 'took too long and was stopped' : killed ? `was ended by ${killed}` : `ended with exit code ${code}, its plan ${parser.ok ? 'kept' : 'not kept'}`;
        verdict.failures.push({ name: 'the file itself', detail: `it ${how}` });
      }
      resolve(verdict);
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
