import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Teardown } from './stores.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const COPIED = ['dist', 'lua'];

/**
 * A copy of the build in which one piece of text is replaced; gives its main.js.
 * @throws when the text does not stand there exactly once: then nothing would have been broken
 */
export function brokenBuild(t: Teardown, file: string, from: string, to: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-racy-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of readdirSync(ROOT)) {
    if (COPIED.includes(name)) cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter: (path) => !path.startsWith(join(ROOT, 'dist', 'test')) });
    else if (!name.startsWith('.')) symlinkSync(join(ROOT, name), join(folder, name));
  }
  const path = join(folder, file);
  const parts = readFileSync(path, 'utf8').split(from);
  if (parts.length !== 2) throw new Error(`${file} has the text ${parts.length - 1} times: ${from}`);
  writeFileSync(path, parts.join(to));
  return join(folder, 'dist', 'src', 'main.js');
}
