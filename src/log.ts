import { pino, type DestinationStream, type Logger } from 'pino';

export type Log = Logger;

/** Names of a line whose values never reach the log. */
export const REDACTED = ['password', 'passwordHash', 'otp', 'code', 'token', 'accessToken', 'refreshToken', 'mfaToken', 'jti', 'secret', 'email', 'phone', 'authorization', 'cookie'] as const;

/** JSON lines on standard output (1), standard error (2) or elsewhere. Lines carry codes and keyed hashes; bodies, headers and addresses are never logged. */
export function createLog(level: string, dest: 1 | 2 | DestinationStream = 1): Log {
  // A write for every line costs a busy node dearly. Fatal lines and the end of the process write at once.
  const destination = typeof dest === 'object' ? dest : pino.destination({ dest, sync: false, minLength: 8192, periodicFlush: 200 });
  const options = {
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: [...REDACTED], censor: '[redacted]' },
  };
  return pino(options, destination);
}
