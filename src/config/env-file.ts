import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { settings } from './load.js';
import type { Config } from './settings.js';

/**
 * One setting as a file of NAME=value lines has it now; null when the file does not set it.
 * @throws Error that says in words why the file or the value cannot be used
 */
export function readFromFile<K extends keyof Config>(file: string, name: K): Config[K] | null {
  const row = settings().find(([field]) => field === name)![1];
  const text = parseEnv(readFileSync(file, 'utf8'))[row.env];
  if (text === undefined || text === '') return null;
  try {
    return row.read(text) as Config[K];
  } catch (error) {
    throw new Error(`${row.env} must be ${(error as Error).message}`, { cause: error });
  }
}
