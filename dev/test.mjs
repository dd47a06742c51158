/**
 * `npm test`: packages, type check, lint and every test against real servers that
 * live for this run only. `npm test -- login otp` runs the test files whose path
 * holds one of the words, and leaves out the lint and what looks at a whole run.
 * With TEST_REDIS_CLUSTER=1, or a REDIS_URL of a cluster, each test gets a cluster
 * of its own; those that stop or configure one server are skipped.
 * The last line is always `N passed, N failed`, with skipped ones behind.
 *
 * `npm run test:faults` (--faults) runs the tests that carry rows of test/faults/rows.ts,
 * with larger counts, and prints the table; without words it also writes docs/faults.md.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from './child.mjs';
import { carriesFigures, countOutcomes, judge, linesOf, publish, readFigures } from './faults.mjs';
import { prepare, ROOT } from './prepare.mjs';
import { createProgress } from './progress.mjs';
import { startServices } from './services.mjs';
import { orderlyStop, Refusal } from './shutdown.mjs';
import { filesBelow, fingerprint, fingerprintOf, isStamped, stamp } from './stamp.mjs';
import { isLast, runSuite } from './suite.mjs';

const HOME = join(ROOT, '.local/test');
const ON_CLUSTER = process.env.TEST_REDIS_CLUSTER === '1' || /^rediss?\+cluster:/.test(process.env.REDIS_URL ?? '');
/** What only one server has, or a client of only one server. */
const ONE_SERVER = /\b(redis|server)\.(pid|port|stop)\b|\bnew (Redis|Client)\(/;
const isFaults = process.argv.includes('--faults');
const words = process.argv.slice(2).filter((word) => word !== '--faults');
const total = { passed: 0, failed: 0, skipped: 0 };
/** Files that failed beside others and passed by themselves. @type {string[]} */
const unsteady = [];
const progress = createProgress();
const { say, show, paint } = progress;
const stopper = orderlyStop({ onSignal: 130, lastWords });

try {
  await prepare(progress);
  await test();
} catch (error) {
  if (!stopper.isStopping()) {
    total.failed += 1;
    say(error instanceof Refusal ? `\n${error.message}` : String(/** @type {Error} */ (error)?.stack ?? error));
  }
}
await stopper.stop(total.failed > 0 ? 1 : 0);

/** @param {number} code */
function lastWords(code) {
  show('');
  if (code === 130) say('interrupted');
  // Whatever ended this early, it did not pass.
  const failed = code === 0 ? total.failed : Math.max(1, total.failed);
  say(`${total.passed} passed, ${failed} failed${total.skipped ? `, ${total.skipped} skipped` : ''}`);
}

/** Repeated only when a file changed, and beside the tests: with the type-aware rules it takes as long as many of them. */
async function lint() {
  const mark = join(ROOT, '.local/lint.stamp');
  const skipped = /(^|\/)(node_modules|dist|\.local|\.tap|\.git|bench\/peers)$/;
  const files = filesBelow(ROOT, (path) => /\.([mc]?[jt]s|json)$/.test(path), (path) => !skipped.test(path));
  const print = fingerprint([process.version, fingerprintOf(files)]);
  if (isStamped(mark, print)) return;
  const began = performance.now();
  const colour = process.stdout.isTTY ? ['--color'] : [];
  const { code, output } = await run(process.execPath, [join(ROOT, 'node_modules/eslint/bin/eslint.js'), '--max-warnings', '0', ...colour, '.'], { cwd: ROOT });
  if (stopper.isStopping()) return;
  const took = paint(2, `(${((performance.now() - began) / 1000).toFixed(1)} s)`);
  if (code === 0) {
    stamp(mark, print);
    return say(`${paint(32, '✔')} lint  clean ${took}`);
  }
  // The tests still run: one look shows everything that is wrong.
  total.failed += 1;
  say(`${paint(31, '✖')} lint  failed ${took}\n${output.trim()}`);
}

async function test() {
  const dist = join(ROOT, 'dist/test');
  const all = filesBelow(dist, (path) => /\.test\.m?js$/.test(path));
  const nameOf = (/** @type {string} */ file) => relative(dist, file).replace(/\.test\.m?js$/, '');
  // A word may be part of a name, or the path of a source or of its output.
  const wanted = words.map((word) => word.replace(/^(\.\/)?(dist\/)?/, '').replace(/\.m?[jt]s$/, ''));
  const isWanted = (/** @type {string} */ file) => wanted.length === 0 || (!isLast(file) && wanted.some((word) => `test/${nameOf(file)}.test`.includes(word)));
  const chosen = all.filter((file) => isWanted(file) && (!isFaults || carriesFigures(file)));
  const files = chosen.filter((file) => !(ON_CLUSTER && ONE_SERVER.test(readFileSync(file, 'utf8'))));
  for (const file of chosen.filter((one) => !files.includes(one))) {
    total.skipped += 1;
    say(`- ${nameOf(file)}  skipped: it works on one server of Redis`);
  }
  if (files.length === 0) throw new Refusal(words.length ? `No test file matches ${words.join(' or ')}.` : 'There are no test files.');

  const replies = join(HOME, 'replies');
  const figures = join(HOME, 'figures');
  const secrets = join(HOME, 'secrets');
  const outputs = join(HOME, 'outputs');
  for (const folder of [replies, figures, secrets, outputs]) rmSync(folder, { recursive: true, force: true });
  const services = await startServices(HOME, { ...progress, durable: false, fresh: true });
  const env = {
    TAP_TIMEOUT: isFaults ? '480' : '120',
    ...(isFaults ? { FAULTS: 'full' } : {}),
    ...process.env,
    ...services.programs,
    MYSQL_URL: services.mysqlUrl,
    REDIS_URL: services.redisUrl,
    NODE_ENV: 'test',
    TEST_REDIS_CLUSTER: ON_CLUSTER ? '1' : '0',
    // Where the tests note which replies they got, for the file that runs last.
    REPLIES_FOLDER: replies,
    // Where they note what they measured, for the table of faults.
    FIGURES_FOLDER: figures,
    // Where they note the secrets that they used and where they were looked for; and what they printed, kept for the same file.
    SECRETS_FOLDER: secrets,
    OUTPUTS_FOLDER: outputs,
  };
  const began = performance.now();
  const suite = runSuite(files, {
    cwd: ROOT,
    home: HOME,
    env,
    ...lanes(),
    limitMs: (isFaults ? 540 : 180) * 1000,
    // A file that fails beside others may have met a busy machine: what it says then is told, what it says alone counts.
    secondTry: !isFaults && words.length === 0,
    beside: words.length === 0 && !isFaults ? lint : async () => {},
    onChange: (running) => show(running.length ? `${total.passed} passed, ${total.failed} failed; running ${running.map(nameOf).join(', ')}` : ''),
    onVerdict: (verdict, isFinal) => {
      keep(join(outputs, `${nameOf(verdict.file).replaceAll('/', '-')}.txt`), verdict.noise);
      report(verdict, nameOf(verdict.file), isFinal);
    },
  });
  const broken = await Promise.race([suite, services.failed]);
  if (stopper.isStopping()) return;
  if (typeof broken === 'string') throw new Refusal(broken);
  say(`\n${files.length} test ${files.length === 1 ? 'file' : 'files'} in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  if (unsteady.length > 0) say(`failed beside others, passed by themselves: ${unsteady.join(', ')}`);
  if (isFaults) await tellFaults(figures, services.versions);
}

/** @param {string} file @param {string} text */
function keep(file, text) {
  if (text === '') return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** @param {string} figures @param {string} versions */
async function tellFaults(figures, versions) {
  const { ROWS } = await import(join(ROOT, 'dist/test/faults/rows.js'));
  const judged = judge(ROWS, readFigures(figures)).filter((one) => words.length === 0 || one.figures.length > 0);
  say(['', ...linesOf(judged), '', countOutcomes(judged)].join('\n'));
  // A row without a figure failed, even if no assertion did.
  total.failed += words.length === 0 ? judged.filter((one) => one.figures.length === 0 && one.outcome === 'FAIL').length : 0;
  if (words.length > 0) return;
  const { length: cores } = os.cpus();
  const size = process.env.FAULTS === undefined || process.env.FAULTS === 'full' ? 'full size' : 'small size';
  const tests = `${total.passed} assertions passed, ${total.failed} failed`;
  publish(join(ROOT, 'docs/faults.md'), judged, `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, ${cores} cores (${os.cpus()[0]?.model.trim() ?? 'unknown'}), Node ${process.versions.node}, ${versions}, ${size}; ${tests}.`);
  say('written to docs/faults.md');
}

/** How many files run at once: TEST_JOBS of them, or one per core, and half as many again of those that mostly wait. */
function lanes() {
  // Figures of time are those of a file that has the machine to itself.
  if (isFaults) return { jobs: 1, waiting: 0 };
  const jobs = Number(process.env.TEST_JOBS) || os.availableParallelism();
  return { jobs, waiting: jobs > 1 ? Math.ceil(jobs / 2) : 0 };
}

/**
 * @param {import('./suite.mjs').Verdict} verdict
 * @param {string} name
 * @param {boolean} isFinal false: it is run once more
 */
function report(verdict, name, isFinal) {
  if (stopper.isStopping()) return;
  if (isFinal) {
    total.passed += verdict.passed;
    total.failed += verdict.failures.length;
    total.skipped += verdict.skipped;
  }
  const good = verdict.failures.length === 0;
  const counts = [`${verdict.passed} passed`, good ? '' : `${verdict.failures.length} failed`, verdict.skipped ? `${verdict.skipped} skipped` : ''].filter(Boolean).join(', ');
  const then = !isFinal ? '; run again at the end, by itself' : verdict.isSecond ? ', by itself' : '';
  say(`${good ? paint(32, '✔') : paint(31, '✖')} ${name}  ${counts}${then} ${paint(2, `(${verdict.seconds.toFixed(1)} s)`)}`);
  if (good && verdict.isSecond) unsteady.push(name);
  if (good) return;
  const indent = (/** @type {string} */ text) => text.replace(/^(?=.)/gm, '    ');
  for (const failure of verdict.failures) say(`\n  ${paint(31, failure.name)}\n${indent(failure.detail)}\n`);
  const noise = verdict.noise.trim().split('\n').slice(-40).join('\n');
  if (noise) say(`  ${paint(2, 'it also printed')}\n${indent(noise)}\n`);
}
