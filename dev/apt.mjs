/**
 * Installs the database servers from the system's own packages where that is
 * possible without asking (root, or sudo without a password); otherwise says
 * which command does it.
 */
import { spawn, spawnSync } from 'node:child_process';

/** @typedef {'mariadb-server-core' | 'redis-server'} Package */

/** What a person types. The core package has the program without a system service. */
/** @param {Package[]} packages */
export const installCommand = (packages) =>
  `sudo apt-get update && sudo apt-get install --no-install-recommends ${packages.join(' ')}`;

/**
 * Runs as root. A package's start script obeys /usr/sbin/policy-rc.d, so one that
 * refuses stands there while we install; a machine that has its own keeps it. The
 * Redis unit would come up at the next boot, so a newly added one is disabled too.
 */
const AS_ROOT = `
set -e
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 LC_ALL=C.UTF-8
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
install() { apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" < /dev/null; }
known() { for name; do apt-cache show "$name" > /dev/null 2>&1 || return 1; done; }
known "$@" && install "$@" || { apt-get update --quiet && install "$@"; }
case " $* " in
  *' redis-server '*) update-rc.d redis-server disable > /dev/null 2>&1 || true ;;
esac
`;

/** @returns {string[] | null} the words that make a command run as root, or null */
function root() {
  if (process.getuid?.() === 0) return [];
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : null;
}

/**
 * @param {Package[]} packages
 * @param {{say: (line: string) => void}} out
 * @returns {Promise<boolean>} false when this machine or this user cannot install
 */
export async function installPackages(packages, { say }) {
  const become = root();
  if (!become || spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status !== 0) return false;
  say(`installing ${packages.join(', ')} with apt-get; system services are not started`);
  const [command, ...args] = [...become, 'sh', '-c', AS_ROOT, 'apt', ...packages];
  const lines = await run(command, args, say);
  if (lines === null) return true;
  for (const line of lines) say(`  ${line}`);
  return false;
}

/**
 * Shows what changes on the machine; the rest is kept and told only on failure.
 * @param {string} command
 * @param {string[]} args
 * @param {(line: string) => void} say
 * @returns {Promise<string[] | null>} null, or the last lines of a failure
 */
function run(command, args, say) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    /** @type {string[]} */
    const tail = [];
    let rest = '';
    const read = (/** @type {Buffer} */ chunk) => {
      const lines = (rest + chunk.toString()).split(/[\r\n]+/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        tail.push(line);
        if (/^Setting up /.test(line)) say(`  ${line.replace(/ \.\.\.$/, '')}`);
      }
      tail.splice(0, tail.length - 15);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', (error) => resolve([error.message]));
    child.once('close', (code) => resolve(code === 0 ? null : [...tail, rest].filter(Boolean)));
  });
}
