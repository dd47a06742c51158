import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Teardown } from './stores.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const COPIED = ['dist', 'lua'];

/** A piece of text of a file of the build, and what stands there instead. */
export type Break = [file: string, from: string, to: string];

/**
 * A copy of the build in which pieces of text are replaced; gives its main.js.
 * @throws when a text does not stand there exactly once: then nothing would have been broken
 */
export function brokenBuild(t: Teardown, file: string, from: string, to: string, ...more: Break[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-racy-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of readdirSync(ROOT)) {
    if (COPIED.includes(name)) cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter: (path) => !path.startsWith(join(ROOT, 'dist', 'test')) });
    else if (!name.startsWith('.')) symlinkSync(join(ROOT, name), join(folder, name));
  }
  for (const one of [[file, from, to] as Break, ...more]) replace(folder, one);
  return join(folder, 'dist', 'src', 'main.js');
}

function replace(folder: string, [file, from, to]: Break): void {
  const path = join(folder, file);
  const parts = readFileSync(path, 'utf8').split(from);
  if (parts.length !== 2) throw new Error(`${file} has the text ${parts.length - 1} times: ${from}`);
  writeFileSync(path, parts.join(to));
}
