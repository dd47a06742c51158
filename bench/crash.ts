import { parseArgs } from 'node:util';
import { crashAmidDeletions, faultsOf, figureOf } from '../test/support/crash.js';
import { startNodes } from '../test/support/nodes.js';

const USAGE = `npm run bench -- crash [options]

Kills the service (kill -9) at random moments amid deletions, starts it again, and counts what became of accounts and
events: none may be lost, halved or doubled. Prints one line; the exit code is 1 when something was.

  --deletions n   accounts that are deleted in all (200)
  --at-once n     of these, how many between two kills (5)
`;

/** The experiment of test/faults/deletion-kill.test.ts, as large as one likes. */
async function run(deletions: number, atOnce: number): Promise<number> {
  const undo: (() => unknown)[] = [];
  const t = { teardown: (work: () => unknown) => void undo.push(work) };
  try {
    const crashes = await crashAmidDeletions(t, await startNodes(t, 1), deletions, atOnce);
    process.stdout.write(`${figureOf(crashes)}\n`);
    const faults = faultsOf(crashes);
    for (const fault of faults) process.stderr.write(`${fault}\n`);
    return faults.length > 0 ? 1 : 0;
  } finally {
    for (const work of undo.reverse()) await work();
  }
}

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { deletions: text, 'at-once': text, help: { type: 'boolean' } } });
if (values.help) process.stdout.write(USAGE);
else process.exitCode = await run(Number(values.deletions ?? 200), Number(values['at-once'] ?? 5));
