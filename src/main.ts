import { buildApp } from './app.js';
import { ConfigError, loadConfig } from './config/load.js';
import { createLog, type Log } from './log.js';
import { reload, watchTerminal } from './reload.js';
import { pendingMigrations } from './store/migrate.js';
import type { Config } from './config/settings.js';

/** Every stop ends within so long, in ms, whatever hangs. */
const STOP_MS = 10_000;

async function start(): Promise<void> {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const pending = await pendingMigrations(config.mysqlUrl).catch((error: unknown) => fail(log, error, 'MySQL cannot be used'));
  if (pending.length > 0) fail(log, null, `the database lacks migrations (${pending.join(', ')}): run "npm run cli -- migrate"`);
  const app = await buildApp(config, log).catch((error: unknown) => fail(log, error, 'the service cannot start'));

  let stopping = false;
  const stop = (signal: string): void => {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), STOP_MS).unref();
    app.close().then(
      () => process.exit(0),
      (error: unknown) => fail(log, error, 'the stop was not clean'),
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const isTerminalGone = watchTerminal();
  process.on('SIGHUP', () => {
    if (!isTerminalGone()) return reload(app.needs);
    // As it would be without this listener. An orderly stop would log, and the log could not be written any more.
    process.removeAllListeners('SIGHUP');
    process.kill(process.pid, 'SIGHUP');
  });
  // Last: whoever reads this line may send a signal at once.
  log.info({ host: config.host, port: app.port, opsPort: app.opsPort }, 'listening');
}

function readConfig(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

function fail(log: Log, error: unknown, message: string): never {
  log.fatal({ err: error }, message);
  process.exit(1);
}

await start();
