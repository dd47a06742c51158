import { pino, type Logger } from 'pino';

export type Log = Logger;

/** Names whose values never reach the log, wherever they stand in a line. */
export const REDACTED = ['password', 'passwordHash', 'otp', 'code', 'token', 'accessToken', 'refreshToken', 'mfaToken', 'jti', 'secret', 'email', 'phone', 'authorization', 'cookie'] as const;

/** JSON lines on standard output. Lines carry codes and keyed hashes; bodies, headers and addresses are never logged. */
export function createLog(level: string): Log {
  return pino({
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
  });
}
