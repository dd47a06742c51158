/**
 * Installs the database servers from the system's own packages where that is
 * possible without asking (root, or sudo without a password); otherwise says
 * which command does it.
 */
import { spawnSync } from 'node:child_process';
import { run } from './child.mjs';

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
if [ -e "$policy" ]; then mine=; else mine=$policy; fi
leave() {
  [ -z "$mine" ] || rm -f "$mine"
  case " $packages " in
    *' redis-server '*) update-rc.d redis-server disable > /dev/null 2>&1 || true ;;
  esac
}
packages=$*
trap leave EXIT
trap 'exit 130' INT TERM HUP
if [ -n "$mine" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$mine"
  chmod 755 "$mine"
fi
install() { apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" < /dev/null; }
known() { for name; do apt-cache show "$name" > /dev/null 2>&1 || return 1; done; }
known "$@" && install "$@" || { apt-get update --quiet && install "$@"; }
`;

/** @returns {string[] | null} the words that make a command run as root, or null */
function root() {
  if (process.getuid?.() === 0) return [];
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : null;
}

/** Whether this machine has apt-get and this user may use it without being asked anything. */
export const mayInstall = () => root() !== null && spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;

/**
 * @param {Package[]} packages
 * @param {{say: (line: string) => void}} out
 * @returns {Promise<boolean>} false when it did not work; what apt-get said is shown then
 */
export async function installPackages(packages, { say }) {
  const [command, ...args] = /** @type {[string, ...string[]]} */ ([...(root() ?? []), 'sh', '-c', AS_ROOT, 'apt', ...packages]);
  let rest = '';
  const onOutput = (/** @type {string} */ text) => {
    const lines = (rest + text).split(/[\r\n]+/);
    rest = lines.pop() ?? '';
    for (const line of lines) if (/^Setting up /.test(line)) say(`  ${line.replace(/ \.\.\.$/, '')}`);
  };
  // Ctrl-C lets it finish (the shell waits for apt-get before it obeys): a half-installed package helps nobody.
  const { code, output } = await run(command, args, { grace: Infinity, onOutput });
  if (code === 0) return true;
  if (code === 130) return false;
  for (const line of output.trim().split('\n').slice(-15)) say(`  ${line}`);
  return false;
}
