import { Command, InvalidArgumentError } from 'commander';
import { runRetention } from '../account/retention.js';
import { report } from './outcome.js';
import { withProgress } from './progress.js';
import { withToolbox } from './toolbox.js';

export function retentionCommand(): Command {
  const retention = new Command('retention').description('permanent deletion of accounts whose retention is over');
  retention
    .command('run')
    .description('purge now what is due, whether or not the nightly task is enabled; waits while a node is at it')
    .option('--dry-run', 'only count what is due')
    .option('--share <part>', 'part of its time that the run works, from 0.01 to 1; the rest it leaves to logins', readShare)
    .action((options: { dryRun?: boolean; share?: number }, command: Command) =>
      withToolbox(async ({ config, keyring, log, mysql }) => {
        const result = await withProgress('purge {bar} {percentage}% {value} of {total} accounts', (bar) =>
          runRetention({ config, keyring, log, mysql: mysql() }, { ...options, progress: (done, total) => bar.update(done, total) }),
        );
        report(command, options.dryRun ? `${result.due} accounts are due` : `purged ${result.purged} of ${result.due} due accounts`, { ...result, dryRun: options.dryRun ?? false });
      }),
    );
  return retention;
}

function readShare(text: string): number {
  const share = Number(text);
  if (!(share >= 0.01 && share <= 1)) throw new InvalidArgumentError('It is to be a number from 0.01 to 1.');
  return share;
}
