import { Command, InvalidArgumentError } from 'commander';
import { startClock } from '../clock.js';
import { readSince, replay } from '../events/replay.js';
import { loadScripts } from '../store/scripts.js';
import { report } from './outcome.js';
import { withProgress } from './progress.js';
import { withToolbox } from './toolbox.js';

export function eventsCommand(): Command {
  const events = new Command('events').description('identity events for other services');
  events
    .command('replay')
    .description('publish events again, with the ids they had')
    .requiredOption('--since <when>', 'ISO 8601 time, or how long ago: 90s, 30m, 24h, 7d', checkSince)
    .action((options: { since: string }, command: Command) =>
      withToolbox(async ({ config, mysql, redis }) => {
        const opened = await redis();
        const clock = await startClock(mysql());
        clock.stop();
        const since = readSince(options.since, clock.now());
        const needs = { config, mysql: mysql(), redis: opened, scripts: loadScripts(opened) };
        const published = await withProgress('replay {bar} {percentage}% {published} events', (bar) => {
          bar.update(0, 100, { published: 0 });
          return replay(needs, since, (soFar) => bar.update(Math.floor(soFar.share * 100), 100, { published: soFar.published }));
        });
        report(command, `published ${published} events again`, { published, since: since.toISOString() });
      }),
    );
  return events;
}

/** Refuses what readSince cannot read; the time itself is reckoned later, by the clock of the database. */
function checkSince(text: string): string {
  try {
    readSince(text, 0);
    return text;
  } catch (error) {
    throw new InvalidArgumentError(`It is to be ${(error as Error).message}.`);
  }
}
