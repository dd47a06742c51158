import { SingleBar } from 'cli-progress';
import { Command, InvalidArgumentError } from 'commander';
import { runRetention } from '../account/retention.js';
import { report } from './outcome.js';
import { withToolbox } from './toolbox.js';

export function retentionCommand(): Command {
  const retention = new Command('retention').description('permanent deletion of accounts whose retention is over');
  retention
    .command('run')
    .description('purge what is due now, whether or not the nightly task is enabled; one run at a time over all nodes')
    .option('--dry-run', 'only count what is due')
    .option('--share <part>', 'part of its time that the run works, from 0.01 to 1; the rest it leaves to logins', readShare)
    .action((options: { dryRun?: boolean; share?: number }, command: Command) =>
      withToolbox(async ({ config, keyring, log, mysql }) => {
        const bar = new SingleBar({ format: 'purge {bar} {percentage}% {value} of {total} accounts', stream: process.stderr });
        const progress = (done: number, total: number): void => (done === 0 ? bar.start(total, 0) : bar.update(done));
        const result = await runRetention({ config, keyring, log, mysql: mysql() }, { ...options, progress });
        bar.stop();
        report(command, options.dryRun ? `${result.due} accounts are due` : `purged ${result.purged} of ${result.due} due accounts`, { ...result, dryRun: options.dryRun ?? false });
      }),
    );
  return retention;
}

function readShare(text: string): number {
  const share = Number(text);
  if (!(share >= 0.01 && share <= 1)) throw new InvalidArgumentError('a number from 0.01 to 1 is expected');
  return share;
}
