import { Command } from 'commander';
import { migrate } from '../store/migrate.js';
import { Failure, report } from './outcome.js';
import { reasonOf, settings } from './toolbox.js';

export function migrateCommand(): Command {
  return new Command('migrate').description('apply the database migrations that are still missing').action(async (_options: unknown, command: Command) => {
    const { mysqlUrl } = settings();
    const applied = await migrate(mysqlUrl).catch((error: unknown) => {
      throw new Failure(`the migrations stopped: ${reasonOf(error)}`, { cause: error });
    });
    report(command, applied.length === 0 ? 'the database is up to date' : `applied ${applied.join(', ')}`, { applied });
  });
}
