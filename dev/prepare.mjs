/** From a checkout to something that runs: Node's version, packages, compiled TypeScript. */
import { existsSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './child.mjs';
import { claimWaiting, release } from './claim.mjs';
import { preparePackages } from './packages.mjs';
import { Refusal } from './shutdown.mjs';
import { filesBelow, fingerprint, fingerprintOf, isStamped, stamp, unstamp } from './stamp.mjs';

export const ROOT = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** The folders tsc compiles, as in tsconfig.json. */
export const SOURCES = ['src', 'workers', 'test', 'bench', 'docs'];
const OLDEST_NODE = [20, 19];

/** @param {{say: import('./progress.mjs').Say, step: import('./progress.mjs').Step}} progress */
export async function prepare({ say, step }) {
  checkNode();
  const busy = join(ROOT, '.local/preparing.json');
  await claimWaiting(busy, (pid) => say(`waiting for another command that prepares this folder (pid ${pid})`));
  try {
    await preparePackages(ROOT, step);
    await build(step);
  } finally {
    release(busy);
  }
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [needMajor = 0, needMinor = 0] = OLDEST_NODE;
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return;
  throw new Refusal(`Portcullis needs Node ${OLDEST_NODE.join('.')} or newer; this is ${process.versions.node} (${process.execPath}).`);
}

/** @param {import('./progress.mjs').Step} step */
async function build(step) {
  const dist = join(ROOT, 'dist');
  const mark = join(dist, '.stamp');
  const inPeers = (/** @type {string} */ path) => path.endsWith('bench/peers') || path.endsWith('node_modules');
  const sources = SOURCES.flatMap((folder) => filesBelow(join(ROOT, folder), (path) => /\.[mc]?ts$/.test(path), (path) => !inPeers(path)));
  const settings = ['tsconfig.json', 'package.json', 'package-lock.json'].map((name) => join(ROOT, name));
  const print = fingerprint([process.version, fingerprintOf([...sources, ...settings])]);
  if (isStamped(mark, print)) return;

  await step('build', `compiling ${sources.length} files`, async (tell) => {
    unstamp(mark);
    const colour = process.stdout.isTTY ? ['--pretty'] : [];
    const { code, output } = await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json', ...colour], { cwd: ROOT });
    if (code !== 0) throw new Refusal(`The TypeScript does not compile:\n${output.trim()}`);
    dropOrphans(dist);
    stamp(mark, print);
    tell(`compiled ${sources.length} files`);
  });
}

/**
 * Output whose source is gone would still be started, a deleted test for instance.
 * @param {string} dist
 */
function dropOrphans(dist) {
  for (const folder of SOURCES) {
    for (const file of filesBelow(join(dist, folder), (path) => /\.[mc]?js$/.test(path))) {
      const source = join(ROOT, relative(dist, file)).replace(/js$/, 'ts');
      if (!existsSync(source)) for (const suffix of ['', '.map']) rmSync(file + suffix, { force: true });
    }
  }
}
