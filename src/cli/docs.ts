import { readFileSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { configPage, envExample } from '../config/document.js';
import { Failure, report } from './outcome.js';

const ROOT = new URL('../../../', import.meta.url);

/** Files that are written from the code, by path; a test compares them. */
export const GENERATED: Record<string, () => string> = { '.env.example': envExample, 'docs/config.md': configPage };

export function docsCommand(): Command {
  return new Command('docs')
    .description('compare the generated documents with the code, or write them')
    .option('--write', 'write them')
    .action((options: { write?: boolean }, command: Command) => {
      const stale = Object.entries(GENERATED).filter(([path, render]) => read(path) !== render());
      if (options.write) for (const [path, render] of stale) writeFileSync(new URL(path, ROOT), render());
      else if (stale.length > 0) throw new Failure(`out of date: ${stale.map(([path]) => path).join(', ')}; run npm run generate`);
      report(command, stale.length === 0 ? 'the documents are up to date' : `wrote ${stale.map(([path]) => path).join(', ')}`, { written: stale.map(([path]) => path) });
    });
}

function read(path: string): string {
  try {
    return readFileSync(new URL(path, ROOT), 'utf8');
  } catch {
    return '';
  }
}
