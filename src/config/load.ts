import { SETTINGS, type Config, type Setting } from './settings.js';

/** Every problem that the environment has, one sentence each. */
export class ConfigError extends Error {
  constructor(readonly problems: string[]) {
    super(`the settings are not usable:\n${problems.map((p) => `  - ${p}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

/**
 * Reads all settings at once.
 * @throws ConfigError that names every problem, not just the first
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, row] of settings()) {
    // An empty variable is an unset one: compose files and unit files leave them behind.
    const given = env[row.env];
    const text = given === undefined || given === '' ? row.fallback : given;
    if (text === null) {
      problems.push(`${row.env} is required: ${row.doc}`);
      continue;
    }
    try {
      values[name] = row.read(text);
    } catch (error) {
      problems.push(`${row.env} must be ${(error as Error).message}`);
    }
  }
  const config = values as Config;
  problems.push(...contradictions(config));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** Every setting with the name of its field in Config. */
export const settings = (): [string, Setting<unknown>][] => Object.values(SETTINGS).flatMap((group) => Object.entries(group as Record<string, Setting<unknown>>));

/** Settings that are fine alone but not together. */
function contradictions(config: Partial<Config>): string[] {
  const problems: string[] = [];
  if ((config.tlsCertFile === null) !== (config.tlsKeyFile === null)) problems.push('TLS_CERT_FILE and TLS_KEY_FILE go together');
  if (config.port !== 0 && config.port === config.opsPort && overlap(config.host, config.opsHost)) problems.push('OPS_PORT must not be PORT: metrics stay off the public listener');
  if (below(config.retentionDays, config.graceDays)) problems.push('ACCOUNT_RETENTION_DAYS must not be below ACCOUNT_DELETION_GRACE_DAYS: accounts would vanish while they can still be restored');
  if (below(config.sessionAbsoluteDays, config.sessionIdleDays)) problems.push('SESSION_ABSOLUTE_DAYS must not be below SESSION_IDLE_DAYS');
  if ((config.argon2MemoryKib ?? 0) * (config.argon2Passes ?? 0) > 2 * 1024 * 1024) problems.push('ARGON2_MEMORY_KIB times ARGON2_PASSES must not exceed 2097152: hashes that dear are not verified either');
  if (config.retentionTz !== undefined && !isTimeZone(config.retentionTz)) problems.push('RETENTION_TZ must be a time zone such as UTC or Europe/Berlin');
  return problems;
}

const ANY_HOST = ['0.0.0.0', '::'];
const overlap = (a: string | undefined, b: string | undefined): boolean => a === b || ANY_HOST.includes(a ?? '') || ANY_HOST.includes(b ?? '');
const below = (a: number | undefined, b: number | undefined): boolean => a !== undefined && b !== undefined && a < b;

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
