/** A private Redis or Valkey. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartFailure, startDaemon } from './daemon.mjs';
import { freePort } from './ports.mjs';

/** @typedef {{password: string, port?: number}} RedisSecrets */

/** The service counts on its keys: none may be evicted, and a restart keeps them. */
const DURABLE = ['appendonly yes', 'appendfsync everysec', 'save ""'];
const IN_MEMORY = ['appendonly no', 'save ""'];
/** Tests hold the server still on purpose, for which they need DEBUG. */
const VOLATILE = [...IN_MEMORY, 'enable-debug-command local'];

/**
 * @param {object} plan
 * @param {import('./programs.mjs').Program} plan.program
 * @param {string} plan.home
 * @param {RedisSecrets} plan.secrets
 * @param {boolean} plan.durable
 * @param {boolean} plan.onDisk
 * @param {(port: number) => void} plan.onPort called with the port it got
 * @returns {Promise<import('./daemon.mjs').Daemon & {url: string}>}
 */
export async function startRedis({ program, home, secrets, durable, onDisk, onPort }) {
  // One folder per maker: their files have drifted apart.
  const data = join(home, program.flavour);
  mkdirSync(data, { recursive: true, mode: 0o700 });
  for (let tries = 1; ; tries++) {
    const port = await freePort(tries === 1 ? secrets.port : undefined);
    const lines = [
      'bind 127.0.0.1', `port ${port}`, 'unixsocket redis.sock', 'unixsocketperm 700', `requirepass ${secrets.password}`,
      'maxmemory-policy noeviction', 'daemonize no', 'logfile ""', 'dir .', ...(!durable ? VOLATILE : onDisk ? DURABLE : IN_MEMORY), '',
    ];
    // In a file and not in the arguments: those every user of the machine can read.
    writeFileSync(join(home, 'redis.conf'), lines.join('\n'), { mode: 0o600 });
    try {
      const isReady = (/** @type {string} */ log) => /ready to accept connections/i.test(log);
      const daemon = await startDaemon({ home, name: 'redis', command: program.path, args: ['../redis.conf'], cwd: data, isReady });
      onPort(port);
      return { ...daemon, url: `redis://:${secrets.password}@127.0.0.1:${port}/0` };
    } catch (error) {
      if (!(error instanceof StartFailure && error.portTaken) || tries === 5) throw error;
    }
  }
}
