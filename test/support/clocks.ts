import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Teardown } from './stores.js';

const PRELOAD = new URL('shifted-date.js', import.meta.url).href;

/** Settings of a node whose clock is off by so much, in ms. */
export const offBy = (ms: number): Record<string, string> => ({ NODE_OPTIONS: `--import ${PRELOAD}`, CLOCK_SHIFT_MS: String(Math.round(ms)) });

/** A clock that can be stepped while its node runs. */
export function steppable(t: Teardown): { settings: Record<string, string>; step: (ms: number) => Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-clock-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'shift');
  writeFileSync(file, '0');
  return {
    settings: { NODE_OPTIONS: `--import ${PRELOAD}`, CLOCK_SHIFT_FILE: file },
    async step(ms) {
      writeFileSync(file, String(ms));
      // The node looks every 20 ms.
      await new Promise((resolve) => setTimeout(resolve, 150));
    },
  };
}
