/** The npm packages: installed by `npm ci` when the lock file, Node or the platform changed. */
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './child.mjs';
import { Refusal } from './shutdown.mjs';
import { fingerprint, isStamped, stamp, unstamp } from './stamp.mjs';

/** A binary that does not fit this machine shows right after the installation and not in the middle of a start. */
const LOADS = ['uWebSockets.js', '@node-rs/argon2', '@node-rs/bcrypt', 'argon2'];
const ADVICE = 'Node 20 runs on Linux with glibc 2.27 or newer; for Node 22 and 24 uWebSockets.js needs glibc 2.38 (Debian 13, Ubuntu 24.04).';

/**
 * @param {string} root
 * @param {import('./progress.mjs').Step} step
 */
export async function preparePackages(root, step) {
  const lock = readFileSync(join(root, 'package-lock.json'));
  const modules = join(root, 'node_modules');
  const mark = join(modules, '.portcullis-stamp');
  const print = fingerprint([lock, process.version.split('.')[0] ?? '', process.platform, process.arch]);
  if (isStamped(mark, print)) return;
  // A linked folder belongs to another checkout, which looks after it.
  if (existsSync(modules) && lstatSync(modules).isSymbolicLink()) return;

  await step('packages', 'installing packages', async (tell) => {
    const asLocked = matchesLock(modules, lock.toString());
    let broken = asLocked ? await whyBroken(root) : 'nothing is installed';
    if (broken) {
      unstamp(mark);
      await install(root);
      broken = await whyBroken(root);
    }
    if (broken) throw new Refusal(`A package has no binary that runs here (Node ${process.version} on ${process.platform}-${process.arch}):\n  ${broken}\n${ADVICE}`);
    stamp(mark, print);
    tell(asLocked ? 'are installed' : `installed ${count(modules)}`);
  });
}

/** @param {string} root */
async function install(root) {
  const [command, ...first] = npm();
  // No install scripts: every binary in use comes prebuilt (argon2 0.44.0 carries its own and
  // would only look for a compiler), and nothing foreign runs while packages arrive.
  // Development packages always: `npm run up` compiles, also where NODE_ENV says production.
  const args = [...first, 'ci', '--ignore-scripts', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
  const env = { ...process.env };
  delete env.NODE_ENV;
  const { code, output } = await run(command, args, { cwd: root, env, grace: 2000 });
  if (code !== 0) throw new Refusal(`npm ci failed:\n${output.trim()}`);
}

/** @returns {[string, ...string[]]} the npm that started us, else the one next to this Node, else whatever PATH has */
function npm() {
  const own = process.env.npm_execpath;
  if (own?.endsWith('npm-cli.js')) return [process.execPath, own];
  const beside = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js');
  return existsSync(beside) ? [process.execPath, beside] : ['npm'];
}

/**
 * Packages that somebody installed by hand as the lock file says need no second
 * installation: npm keeps a list of what it put there.
 * @param {string} modules
 * @param {string} lock
 */
function matchesLock(modules, lock) {
  try {
    const wanted = JSON.parse(lock).packages;
    const present = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')).packages;
    // An older stamp means another Node or platform: its binaries may be the wrong ones.
    if (existsSync(join(modules, '.portcullis-stamp'))) return false;
    return Object.entries(wanted).every(([path, entry]) => path === '' || (present[path] ? present[path].version === entry.version : entry.optional));
  } catch {
    return false;
  }
}

/** @param {string} root @returns {Promise<string>} empty when all of them load */
async function whyBroken(root) {
  const { code, output } = await run(process.execPath, ['-e', `for (const name of ${JSON.stringify(LOADS)}) require(name)`], { cwd: root });
  if (code === 0) return '';
  // The innermost reason, which a package may have wrapped in advice of its own.
  const lines = output.trim().split('\n');
  return lines.find((line) => /GLIBC|ELF|NODE_MODULE_VERSION|Cannot find module/.test(line))?.trim() ?? lines.slice(-3).join(' ').trim();
}

/** @param {string} modules */
const count = (modules) => Object.keys(JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')).packages).length;
