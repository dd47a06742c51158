import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { readFromFile } from './config/env-file.js';
import type { Deps } from './deps.js';
import { ApiError } from './errors.js';

/**
 * What SIGHUP does: takes HASH_THREADS from ENV_FILE as it is now. The environment of a running process cannot change.
 * A file or value that cannot be used is told of in the log, and nothing changes.
 */
export function reload({ config, log, hashing }: Pick<Deps, 'config' | 'log' | 'hashing'>): void {
  if (config.envFile === null) return log.warn('SIGHUP changes nothing: ENV_FILE names no file to read HASH_THREADS from');
  try {
    const threads = readFromFile(config.envFile, 'hashThreads');
    if (threads === null) return log.warn({ file: config.envFile }, 'SIGHUP changes nothing: the file does not set HASH_THREADS');
    hashing.resize(threads, 'SIGHUP');
  } catch (error) {
    const reason = error instanceof ApiError ? error.extras.errors?.[0]?.message : (error as Error).message;
    log.error({ file: config.envFile, reason }, 'SIGHUP changes nothing: HASH_THREADS cannot be used');
  }
}

/** To be asked at the start: tells later whether the terminal that the process was started at is gone, which SIGHUP says as well. */
export function watchTerminal(): () => boolean {
  const isAtTerminal = isatty(0);
  return () => {
    if (!isAtTerminal) return false;
    try {
      closeSync(openSync('/dev/tty', 'r'));
      return false;
    } catch {
      return true;
    }
  };
}
