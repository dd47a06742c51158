import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { SingleBar } from 'cli-progress';
import { Command } from 'commander';
import { insertAccounts, type NewAccount } from '../store/accounts.js';
import { readAccountLine, type AccountLine } from './account-line.js';
import { Failure, report } from './outcome.js';
import { withToolbox, type Toolbox } from './toolbox.js';

/** Lines that go into one transaction. */
const BATCH = 500;

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
    .argument('<file.jsonl>', 'members: email, password or passwordHash (PHC argon2 or bcrypt), emailVerified, phone, phoneVerified, status, roles, tenants, profiles')
    .action((file: string, _options: unknown, command: Command) =>
      withToolbox(async (tools) => {
        const bar = new SingleBar({ format: 'import {bar} {percentage}% {created} created, {bad} refused', stream: process.stderr, noTTYOutput: false });
        bar.start(size(file), 0, { created: 0, bad: 0 });
        const imported = await importFile(tools, file, (bytes, done) => bar.update(bytes, { created: done.created, bad: done.problems.length }));
        bar.stop();
        for (const { line, problem } of imported.problems) process.stderr.write(`line ${line}: ${problem}\n`);
        const { created, lines, problems } = imported;
        report(command, `created ${created} of ${lines} accounts`, { lines, created, problems });
        if (problems.length > 0) throw new Failure(`${problems.length} of ${lines} lines were not imported`);
      }),
    );
}

function size(file: string): number {
  try {
    return statSync(file).size;
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Reads the file line by line; a bad line is noted and the rest goes on. */
export async function importFile(tools: Pick<Toolbox, 'mysql' | 'hashing'>, file: string, progress: (bytes: number, soFar: Imported) => void): Promise<Imported> {
  const imported: Imported = { lines: 0, created: 0, problems: [] };
  const input = createReadStream(file);
  let batch: Numbered[] = [];
  let number = 0;
  for await (const text of createInterface({ input, crlfDelay: Infinity })) {
    number += 1;
    if (text.trim() === '') continue;
    imported.lines += 1;
    try {
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

async function importBatch({ mysql, hashing }: Pick<Toolbox, 'mysql' | 'hashing'>, batch: Numbered[], imported: Imported): Promise<void> {
  const accounts = await Promise.all(
    batch.map(async ({ line }): Promise<NewAccount> => ({
      email: line.email,
      passwordHash: line.passwordHash ?? (line.password === undefined ? null : await hashing().hash(line.password, { network: 'cli' })),
      emailVerified: line.emailVerified ?? false,
      phone: line.phone ?? null,
      phoneVerified: line.phoneVerified ?? false,
      status: line.status ?? 'active',
      roles: line.roles ?? [],
      tenants: line.tenants ?? [],
      profiles: (line.profiles ?? []).map((profile) => ({ provider: profile.provider, givenName: profile.givenName ?? null, familyName: profile.familyName ?? null })),
    })),
  );
  const ids = await insertAccounts(mysql(), accounts);
  ids.forEach((id, i) => {
    if (id === null) imported.problems.push({ line: batch[i]!.number, problem: 'an account with this address exists already' });
    else imported.created += 1;
  });
}
