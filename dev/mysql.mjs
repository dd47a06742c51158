/** A private MySQL or MariaDB: its data, its settings, its one user. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './child.mjs';
import { StartFailure, startDaemon } from './daemon.mjs';
import { freePort } from './ports.mjs';
import { titleOf } from './programs.mjs';

/** @typedef {import('./programs.mjs').Program} Program */
/** @typedef {{user: string, password: string, rootPassword: string, port?: number}} MysqlSecrets */

/** The server refuses to run as root unless told so. */
const asUser = () => (process.getuid?.() === 0 ? ['--user=root'] : []);

/**
 * Temporary files, beside the data as seen from there. A server that starts removes those of any other in the same
 * folder, in the middle of a statement too.
 */
const SCRATCH = 'mysql-tmp';

/** Small and quick to start, yet an answered commit survives a power cut. */
const DURABLE = ['--innodb-flush-log-at-trx-commit=1'];
/** For data that is thrown away after the run. */
const VOLATILE = ['--innodb-flush-log-at-trx-commit=0', '--innodb-doublewrite=0', '--loose-innodb-flush-method=nosync'];

/**
 * @param {object} plan
 * @param {Program} plan.program
 * @param {string} plan.home
 * @param {MysqlSecrets} plan.secrets
 * @param {boolean} plan.durable
 * @param {string} [plan.bufferPool] memory for pages, as the server takes it
 * @param {(port: number) => void} plan.onPort called with the port it got
 * @returns {Promise<import('./daemon.mjs').Daemon & {url: string}>}
 */
export async function startMysql({ program, home, secrets, durable, bufferPool = '128M', onPort }) {
  // One folder per maker: neither can read the other's files.
  const data = join(home, program.flavour);
  mkdirSync(join(home, SCRATCH), { recursive: true, mode: 0o700 });
  if (!existsSync(data)) await createData(program, data);
  writeFileSync(join(home, 'mysql-init.sql'), accounts(secrets), { mode: 0o600 });

  for (let tries = 1; ; tries++) {
    const port = await freePort(tries === 1 ? secrets.port : undefined);
    const args = [
      '--no-defaults', ...asUser(),
      // The server changes into its data folder: relative names keep the socket under the 107 bytes a path may have.
      '--datadir=.', '--socket=mysql.sock', '--pid-file=mysql.pid', '--init-file=../mysql-init.sql', `--tmpdir=../${SCRATCH}`,
      '--bind-address=127.0.0.1', `--port=${port}`, '--loose-mysqlx=0', '--skip-name-resolve', '--local-infile=0',
      '--skip-log-bin', '--performance-schema=0', '--max-connections=500', '--character-set-server=utf8mb4',
      `--innodb-buffer-pool-size=${bufferPool}`, ...(durable ? DURABLE : VOLATILE),
    ];
    try {
      const isReady = (/** @type {string} */ log) => /ready for connections\./.test(log);
      const daemon = await startDaemon({ home, name: 'mysql', command: program.path, args, cwd: data, isReady });
      onPort(port);
      return { ...daemon, url: `mysql://${secrets.user}:${secrets.password}@127.0.0.1:${port}/portcullis` };
    } catch (error) {
      if (!(error instanceof StartFailure && error.portTaken) || tries === 5) throw error;
    }
  }
}

/**
 * Runs inside the server before it accepts the first connection, at every start.
 * Tests create databases and users of their own, hence the wide rights.
 * @param {MysqlSecrets} secrets
 */
function accounts({ user, password, rootPassword }) {
  const both = ['127.0.0.1', 'localhost'].flatMap((host) => [
    `CREATE USER IF NOT EXISTS '${user}'@'${host}' IDENTIFIED BY '${password}';`,
    `ALTER USER '${user}'@'${host}' IDENTIFIED BY '${password}';`,
    `GRANT ALL PRIVILEGES ON *.* TO '${user}'@'${host}' WITH GRANT OPTION;`,
  ]);
  return ['CREATE DATABASE IF NOT EXISTS portcullis;', `ALTER USER 'root'@'localhost' IDENTIFIED BY '${rootPassword}';`, ...both, ''].join('\n');
}

/**
 * Built aside and renamed, so that a run which is killed half-way leaves nothing that looks complete.
 * @param {Program} program
 * @param {string} data
 */
async function createData(program, data) {
  const draft = `${data}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  const common = ['--no-defaults', ...asUser(), '--datadir=.', `--tmpdir=../${SCRATCH}`, '--innodb-flush-log-at-trx-commit=0', '--loose-innodb-flush-method=nosync'];
  const { code, output } = program.flavour === 'mysql'
    ? await run(program.path, [...common, '--initialize-insecure'], { cwd: draft })
    : await run(program.path, [...common, '--bootstrap', '--skip-networking', '--max-allowed-packet=16M'], { cwd: draft, input: await systemTables(program) });
  if (code !== 0) throw new StartFailure(`${titleOf(program)} --datadir=${draft}`, output, 'what it printed');
  renameSync(draft, data);
}

/**
 * What mariadb-install-db feeds to the server; that script itself needs parts of the
 * client packages, which a machine with only the server lacks.
 * @param {Program} program
 */
async function systemTables(program) {
  const { output } = await run(program.path, ['--no-defaults', '--verbose', '--help']);
  const value = (/** @type {string} */ name) => new RegExp(`^${name}\\s+(/.*?)/?$`, 'm').exec(output)?.[1] ?? '/usr';
  const base = value('basedir');
  const folders = [value('lc-messages-dir'), join(base, 'share/mysql'), join(base, 'share/mariadb'), join(base, 'share'), '/usr/share/mysql', '/usr/share/mariadb'];
  const folder = folders.find((path) => existsSync(join(path, 'mysql_system_tables.sql')));
  if (!folder) throw new Error(`${program.path}: mysql_system_tables.sql was not found in ${folders.join(', ')}`);
  const sql = ['mysql_system_tables', 'mysql_performance_tables', 'mysql_system_tables_data', 'maria_add_gis_sp_bootstrap', 'mysql_sys_schema']
    .map((name) => join(folder, `${name}.sql`)).filter((path) => existsSync(path)).map((path) => readFileSync(path, 'utf8')).join('\n')
    .split('\n').filter((line) => !line.includes('@current_hostname')).join('\n');
  // Root without a password on 127.0.0.1 and ::1 is what the script would leave; only the socket stays, and gets a password at the first start.
  const onlySocket = "DELETE FROM global_priv WHERE User <> 'mariadb.sys' AND Host <> 'localhost' AND User <> 'PUBLIC';\nDELETE FROM global_priv WHERE User = '';";
  return `CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n${sql}\nUSE mysql;\n${onlySocket}\n`;
}
