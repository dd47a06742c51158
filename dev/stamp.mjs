/**
 * Skipping what is already done: a stamp file holds a fingerprint of everything a
 * step read; while that has not changed, the step need not run again.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** @param {(string | Buffer)[]} parts */
export function fingerprint(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}

/** Size and time stand for the content: quick, and a false alarm only costs a rebuild. */
/** @param {string[]} files */
export const fingerprintOf = (files) =>
  fingerprint(files.map((file) => {
    const { size, mtimeMs } = statSync(file);
    return `${file} ${size} ${mtimeMs}`;
  }));

/** @param {string} file @param {string} print */
export function isStamped(file, print) {
  try {
    return readFileSync(file, 'utf8') === print;
  } catch {
    return false;
  }
}

/** @param {string} file @param {string} print */
export function stamp(file, print) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, print);
}

/** Taken away before a step begins, so that an interrupted one is not taken for done. */
/** @param {string} file */
export const unstamp = (file) => rmSync(file, { force: true });

/**
 * Files below a folder, sorted; a missing folder has none.
 * @param {string} folder
 * @param {(path: string) => boolean} [wanted]
 * @param {(path: string) => boolean} [entered] false: do not look into that folder
 * @returns {string[]}
 */
export function filesBelow(folder, wanted = () => true, entered = () => true) {
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return entered(path) ? filesBelow(path, wanted, entered) : [];
      return entry.isFile() && wanted(path) ? [path] : [];
    });
}
