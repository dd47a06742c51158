import { Command, CommanderError } from 'commander';
import { Failure } from './outcome.js';

/** In the order of the help. Only the command that is named is loaded: what the others need takes half of a start. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  migrate: async () => (await import('./migrate.js')).migrateCommand(),
  user: async () => (await import('./user.js')).userCommand(),
  retention: async () => (await import('./retention.js')).retentionCommand(),
  events: async () => (await import('./events.js')).eventsCommand(),
  tune: async () => (await import('./tune.js')).tuneCommand(),
  keys: async () => (await import('./keys.js')).keysCommand(),
  docs: async () => (await import('./docs.js')).docsCommand(),
};
const first = process.argv.slice(2).find((word) => !word.startsWith('-')) ?? '';
const named = Object.hasOwn(COMMANDS, first) ? [first] : Object.keys(COMMANDS);

const program = new Command('portcullis')
  .description('Operator commands of Portcullis. Settings come from the environment, as for the service (docs/config.md).')
  .option('--json', 'print the result as one JSON object on standard output; messages go to standard error')
  .exitOverride()
  .configureHelp({ showGlobalOptions: true })
  .addHelpText('after', '\nEach command has --help. Exit codes: 0 done, 1 not or not wholly done, 2 wrong usage.');
for (const name of named) program.addCommand(await COMMANDS[name]!(), { hidden: name === 'docs' });

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
