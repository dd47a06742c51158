/**
 * Finding the database servers of this machine, and what they are: Debian's
 * `mysqld` is MariaDB, a `redis-server` may be Valkey.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './child.mjs';
import { Refusal } from './shutdown.mjs';

/** @typedef {{path: string, flavour: 'mariadb' | 'mysql' | 'redis' | 'valkey', version: string}} Program */

/** Servers often live outside a user's PATH. */
const FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin', '/usr/libexec', '/usr/local/mysql/bin', '/opt/homebrew/bin'];

const KINDS = {
  mysql: { variable: 'MYSQLD', names: ['mariadbd', 'mysqld'], oldest: { mariadb: '10.11', mysql: '8.4' } },
  redis: { variable: 'REDIS_SERVER', names: ['redis-server', 'valkey-server'], oldest: { redis: '7.0', valkey: '8.0' } },
};

/**
 * @param {keyof typeof KINDS} kind
 * @returns {Promise<Program | null>} null when the machine has none
 */
export async function findProgram(kind) {
  const { variable, names } = KINDS[kind];
  const named = process.env[variable];
  if (named && !isProgram(named)) throw new Refusal(`${variable} names ${named}, which is not a program.`);
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...FOLDERS].filter(Boolean);
  const path = named ?? names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
  return path ? describe(path) : null;
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** @param {string} path @returns {Promise<Program>} */
async function describe(path) {
  const { code, output } = await run(path, ['--version']);
  if (code !== 0) throw new Refusal(`${path} --version failed:\n${output.trim()}`);
  const version = /\b(?:Ver |v=)(\d+\.\d+(?:\.\d+)?)/.exec(output)?.[1] ?? 'unknown';
  /** @type {Program['flavour']} */
  const flavour = /mariadb/i.test(output) ? 'mariadb' : /mysqld|mysql/i.test(output) ? 'mysql' : /valkey/i.test(output) ? 'valkey' : 'redis';
  return { path, flavour, version };
}

const TITLES = { mariadb: 'MariaDB', mysql: 'MySQL', redis: 'Redis', valkey: 'Valkey' };

/** @param {Program} program */
export const titleOf = (program) => `${TITLES[program.flavour]} ${program.version}`;

/**
 * @param {keyof typeof KINDS} kind
 * @param {Program} program
 * @returns {string | null} a remark when it is older than what the service is tested with
 */
export function tooOld(kind, program) {
  const oldest = /** @type {Record<string, string>} */ (KINDS[kind].oldest)[program.flavour] ?? '0';
  const [major = 0, minor = 0] = program.version.split('.').map(Number);
  const [needMajor = 0, needMinor = 0] = oldest.split('.').map(Number);
  const fits = program.version === 'unknown' || major > needMajor || (major === needMajor && minor >= needMinor);
  return fits ? null : `${titleOf(program)} is older than ${oldest}, the oldest one that is tested; name another with ${KINDS[kind].variable}`;
}
