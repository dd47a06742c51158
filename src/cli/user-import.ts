import { createReadStream, statSync } from 'node:fs';
import { Command } from 'commander';
import type { NewAccount } from '../store/accounts.js';
import { readAccountLine, type AccountLine } from './account-line.js';
import { readLines } from './lines.js';
import { addAccounts } from './new-accounts.js';
import { Failure, report } from './outcome.js';
import { withProgress } from './progress.js';
import { withToolbox, type Toolbox } from './toolbox.js';

/** Lines that go into one transaction. */
const BATCH = 500;

const FORMAT = `
A line is one JSON object, in UTF-8. All members but email are optional:
  email          "ann@example.com", the login name
  password       "…" 8 to 256 characters, or
  passwordHash   "$argon2id$v=19$…" (PHC argon2) or "$2b$…" (bcrypt)
  emailVerified  true or false
  phone          "+491701234567"
  phoneVerified  true or false
  status         "active" or "disabled"
  roles          ["editor"], created when they do not exist
  tenants        ["acme"], slugs, created when they do not exist
  profiles       [{"provider": "google", "givenName": "Ann", "familyName": "Lee"}]

Hashes are renewed at the cost set now when their owner first logs in. bcrypt holds 72 bytes of a password and none
behind a NUL: whoever has a longer one resets it. Each account gets an audit entry and an identity.user.created event.

A bad line is reported with its number and the rest goes on; the exit code is 1 then.
Running an import again is safe: accounts that exist already are left as they are and reported.`;

type ImportTools = Pick<Toolbox, 'mysql' | 'keyring' | 'hashing'>;

interface Numbered {
  number: number;
  line: AccountLine;
}

/** What became of an import. */
export interface Imported {
  lines: number;
  created: number;
  problems: { line: number; problem: string }[];
}

export function importCommand(): Command {
  return new Command('import')
    .description('create accounts from a file with one JSON object per line')
    .argument('<file.jsonl>', 'the file')
    .addHelpText('after', FORMAT)
    .action((file: string, _options: unknown, command: Command) =>
      withToolbox(async (tools) => {
        const bytes = sizeOf(file);
        const imported = await withProgress('import {bar} {percentage}% {created} created, {bad} refused', (bar) =>
          importFile(tools, file, (read, { created, problems }) => bar.update(read, Math.max(bytes, read), { created, bad: problems.length })),
        );
        for (const { line, problem } of imported.problems) process.stderr.write(`line ${line}: ${problem}\n`);
        const { created, lines, problems } = imported;
        report(command, `created ${created} of ${lines} accounts`, { lines, created, problems });
        if (problems.length > 0) throw new Failure(`${problems.length} of ${lines} lines were not imported`);
      }),
    );
}

/**
 * Bytes of a file; 0 for a pipe.
 * @throws Failure when it cannot be read
 */
function sizeOf(file: string): number {
  try {
    const found = statSync(file);
    if (found.isDirectory()) throw new Error('it is a folder');
    return found.size;
  } catch (error) {
    throw unreadable(file, error);
  }
}

const unreadable = (file: string, error: unknown): Failure => new Failure(`${file} cannot be read: ${(error as Error).message}`, { cause: error });

/**
 * Reads the file line by line; a bad line is noted and the rest goes on. Blank lines count as lines of the file only.
 * @throws Failure when the file cannot be read
 */
export async function importFile(tools: ImportTools, file: string, progress: (bytes: number, soFar: Imported) => void): Promise<Imported> {
  const imported: Imported = { lines: 0, created: 0, problems: [] };
  const input = createReadStream(file);
  let batch: Numbered[] = [];
  progress(0, imported);
  for await (const { number, text, problem } of readLines(chunksOf(input, file))) {
    if (text?.trim() === '') continue;
    imported.lines += 1;
    try {
      if (text === null) throw new Error(problem);
      batch.push({ number, line: readAccountLine(text) });
    } catch (error) {
      imported.problems.push({ line: number, problem: (error as Error).message });
    }
    if (batch.length < BATCH) continue;
    await importBatch(tools, batch, imported);
    batch = [];
    progress(input.bytesRead, imported);
  }
  if (batch.length > 0) await importBatch(tools, batch, imported);
  imported.problems.sort((a, b) => a.line - b.line);
  progress(input.bytesRead, imported);
  return imported;
}

async function* chunksOf(input: AsyncIterable<Buffer>, file: string): AsyncGenerator<Buffer> {
  try {
    yield* input;
  } catch (error) {
    throw unreadable(file, error);
  }
}

async function importBatch(tools: ImportTools, batch: Numbered[], imported: Imported): Promise<void> {
  const accounts = await Promise.all(
    batch.map(async ({ line }): Promise<NewAccount> => ({
      email: line.email,
      passwordHash: line.passwordHash ?? (line.password === undefined ? null : await tools.hashing().hash(line.password, { network: 'cli' })),
      emailVerified: line.emailVerified ?? false,
      phone: line.phone ?? null,
      phoneVerified: line.phoneVerified ?? false,
      status: line.status ?? 'active',
      roles: line.roles ?? [],
      tenants: line.tenants ?? [],
      profiles: (line.profiles ?? []).map((profile) => ({ provider: profile.provider, givenName: profile.givenName ?? null, familyName: profile.familyName ?? null })),
    })),
  );
  const ids = await addAccounts(tools, 'import', accounts);
  ids.forEach((id, i) => {
    if (id === null) imported.problems.push({ line: batch[i]!.number, problem: 'an account with this address exists already' });
    else imported.created += 1;
  });
}
