import { Command, CommanderError } from 'commander';
import { docsCommand } from './docs.js';
import { eventsCommand } from './events.js';
import { keysCommand } from './keys.js';
import { migrateCommand } from './migrate.js';
import { Failure } from './outcome.js';
import { retentionCommand } from './retention.js';
import { tuneCommand } from './tune.js';
import { userCommand } from './user.js';

const program = new Command('portcullis')
  .description('Operator commands of Portcullis. Settings come from the environment, as for the service (docs/config.md).')
  .option('--json', 'print the result as one JSON object on standard output; messages go to standard error')
  .exitOverride()
  .configureHelp({ showGlobalOptions: true })
  .addHelpText('after', '\nEach command has --help. Exit codes: 0 done, 1 not or not wholly done, 2 wrong usage.');
program.addCommand(migrateCommand());
program.addCommand(userCommand());
program.addCommand(retentionCommand());
program.addCommand(eventsCommand());
program.addCommand(tuneCommand());
program.addCommand(keysCommand());
program.addCommand(docsCommand(), { hidden: true });

/** Applies to subcommands too: commander does not hand these settings down to added ones. */
function settle(command: Command): void {
  for (const child of command.commands) settle(child.copyInheritedSettings(command));
}
settle(program);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else if (error instanceof Failure) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  } else throw error;
}
