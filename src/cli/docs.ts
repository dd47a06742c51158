import { readFileSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { configPage, envExample } from '../config/document.js';
import { createDocument } from '../openapi/document.js';
import { withEndpoints } from '../openapi/table.js';
import { PUBLIC_ROUTES } from '../routes.js';
import { Failure, report } from './outcome.js';

const ROOT = new URL('../../../', import.meta.url);

/** Files that are written from the code, by path: what each should be, given what it is. A test compares them. */
export const GENERATED: Record<string, (text: string) => string> = {
  '.env.example': envExample,
  'docs/config.md': configPage,
  'docs/openapi.json': () => `${JSON.stringify(createDocument(PUBLIC_ROUTES), null, 2)}\n`,
  'README.md': (text) => withEndpoints(text, createDocument(PUBLIC_ROUTES)),
};

export function docsCommand(): Command {
  return new Command('docs')
    .description('compare the generated documents with the code, or write them')
    .option('--write', 'write them')
    .action((options: { write?: boolean }, command: Command) => {
      const stale = Object.entries(GENERATED).filter(([path, render]) => read(path) !== render(read(path)));
      if (options.write) for (const [path, render] of stale) writeFileSync(new URL(path, ROOT), render(read(path)));
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
