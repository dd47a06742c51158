/**
 * MySQL and Redis for `npm run up`, `npm test` and `npm run bench`: those named by
 * MYSQL_URL and REDIS_URL, else private ones under the given folder.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { installCommand, installPackages, mayInstall } from './apt.mjs';
import { claim, release } from './claim.mjs';
import { prefer, reap } from './daemon.mjs';
import { startMysql } from './mysql.mjs';
import { findProgram, titleOf, tooOld } from './programs.mjs';
import { startRedis } from './redis.mjs';
import { Refusal } from './shutdown.mjs';

/** @typedef {import('./mysql.mjs').MysqlSecrets} MysqlSecrets */
/** @typedef {import('./redis.mjs').RedisSecrets} RedisSecrets */
/** @typedef {import('./progress.mjs').Say} Say */
/** @typedef {import('./progress.mjs').Step} Step */

/**
 * @typedef {object} Services
 * @property {string} mysqlUrl
 * @property {string} redisUrl
 * @property {Record<string, string>} programs MYSQLD and REDIS_SERVER, for those who start more of them
 * @property {string} versions what was started, for those who say what they ran on
 * @property {Promise<string>} failed fulfilled with a sentence when one of them ends
 * @property {() => Promise<void>} stop
 */

/** @param {Say} say @returns {Step} */
const plainSteps = (say) => (name, _doing, work) => work((done) => say(`${name}: ${done}`));

/**
 * @param {string} dir
 * @param {object} how
 * @param {Say} how.say
 * @param {Step} [how.step]
 * @param {boolean} [how.durable] false: fast, and a crash of the machine loses data
 * @param {boolean} [how.redisOnDisk] false: a restart of Redis forgets, whatever `durable` says
 * @param {boolean} [how.fresh] start with empty data
 * @param {boolean} [how.preferred] the scheduler prefers the servers to the programs that use them, where that may be asked for
 * @param {string} [how.bufferPool] memory that MySQL keeps pages in, such as 2G
 * @returns {Promise<Services>}
 */
export async function startServices(dir, { say, step = plainSteps(say), durable = true, redisOnDisk = true, fresh = false, preferred = false, bufferPool }) {
  const home = resolve(dir);
  const inUse = join(home, 'in-use.json');
  const holder = claim(inUse);
  if (holder !== null) throw new Refusal(`The servers in ${home} are in use by a command that still runs (pid ${holder}).`);
  await reap(home, say);
  const [mysqld, redisServer] = await providePrograms({ say, step });
  if (fresh) for (const name of ['mariadb', 'mysql', 'redis', 'valkey']) rmSync(join(home, name), { recursive: true, force: true });

  const secrets = keepSecrets(join(home, 'servers.json'));
  /** @type {(import('./daemon.mjs').Daemon & {url: string})[]} */
  const started = [];
  /** @type {string[]} */
  const titles = [];
  let mysqlUrl = process.env.MYSQL_URL ?? '';
  let redisUrl = process.env.REDIS_URL ?? '';
  if (mysqld) {
    mysqlUrl = await begin('mysql', mysqld, (program) =>
      startMysql({ program, home, durable, bufferPool, secrets: secrets.mysql, onPort: (port) => secrets.savePort('mysql', port) }));
  }
  if (redisServer) {
    redisUrl = await begin('redis', redisServer, (program) =>
      startRedis({ program, home, durable, onDisk: redisOnDisk, secrets: secrets.redis, onPort: (port) => secrets.savePort('redis', port) }));
  }

  /**
   * @param {'mysql' | 'redis'} kind
   * @param {import('./programs.mjs').Program} program
   * @param {(program: import('./programs.mjs').Program) => Promise<import('./daemon.mjs').Daemon & {url: string}>} open
   */
  async function begin(kind, program, open) {
    const remark = tooOld(kind, program);
    if (remark) say(`  note: ${remark}`);
    return step(kind, `starting ${titleOf(program)}`, async (tell) => {
      const daemon = await open(program);
      started.push(daemon);
      if (preferred) prefer(daemon.pid);
      titles.push(titleOf(program));
      tell(`${titleOf(program)} on ${new URL(daemon.url).host}`);
      return daemon.url;
    });
  }

  return {
    mysqlUrl,
    redisUrl,
    versions: titles.join(', ') || 'servers as named by MYSQL_URL and REDIS_URL',
    programs: {
      ...(mysqld ? { MYSQLD: mysqld.path } : {}),
      ...(redisServer ? { REDIS_SERVER: redisServer.path } : {}),
    },
    failed: started.length ? Promise.race(started.map((daemon) => daemon.ended)) : new Promise(() => {}),
    stop: async () => {
      for (const daemon of started.reverse()) await daemon.stop();
      release(inUse);
    },
  };
}

/**
 * The programs of those servers that no URL names, installed if they are missing.
 * @param {{say: Say, step: Step}} progress
 */
async function providePrograms({ say, step }) {
  const find = () => Promise.all([process.env.MYSQL_URL ? null : findProgram('mysql'), process.env.REDIS_URL ? null : findProgram('redis')]);
  const missingOf = (/** @type {Awaited<ReturnType<typeof find>>} */ [mysqld, redisServer]) => /** @type {import('./apt.mjs').Package[]} */ ([
    ...(mysqld || process.env.MYSQL_URL ? [] : ['mariadb-server-core']),
    ...(redisServer || process.env.REDIS_URL ? [] : ['redis-server']),
  ]);
  const found = await find();
  const missing = missingOf(found);
  if (missing.length === 0) return found;
  const again = mayInstall()
    ? await step('servers', `installing ${missing.join(' and ')} with apt-get; no system service is started`, async (tell) => {
        const done = await installPackages(missing, { say });
        tell(done ? `installed ${missing.join(' and ')}` : 'apt-get could not install them', done);
        return find();
      })
    : found;
  const still = missingOf(again);
  if (still.length === 0) return again;
  throw new Refusal([
    `Missing on this machine: ${still.map((name) => (name === 'redis-server' ? 'a Redis server' : 'a MySQL or MariaDB server')).join(' and ')}.`,
    'On Debian or Ubuntu this installs what is needed:',
    '',
    `  ${installCommand(still)}`,
    '',
    'Elsewhere install MySQL >= 8.4 or MariaDB >= 10.11 and Redis >= 7 or Valkey >= 8, or name them with',
    'MYSQLD=/path/to/mysqld and REDIS_SERVER=/path/to/redis-server, or use running ones with MYSQL_URL and REDIS_URL.',
  ].join('\n'));
}

/**
 * Passwords are made once per folder; the ports of the last run are preferred again.
 * @param {string} file
 */
function keepSecrets(file) {
  const secret = () => randomBytes(24).toString('base64url');
  /** @type {{mysql: MysqlSecrets, redis: RedisSecrets}} */
  let kept;
  try {
    kept = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    kept = { mysql: { user: 'portcullis', password: secret(), rootPassword: secret() }, redis: { password: secret() } };
  }
  const save = () => {
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  };
  save();
  const savePort = (/** @type {'mysql' | 'redis'} */ kind, /** @type {number} */ port) => {
    kept[kind].port = port;
    save();
  };
  return { mysql: kept.mysql, redis: kept.redis, savePort };
}
