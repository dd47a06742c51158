import { SingleBar } from 'cli-progress';
import { Command } from 'commander';
import { startClock } from '../clock.js';
import { readSince, replay } from '../events/replay.js';
import { loadScripts } from '../store/scripts.js';
import { Failure, report } from './outcome.js';
import { withToolbox } from './toolbox.js';

export function eventsCommand(): Command {
  const events = new Command('events').description('identity events for other services');
  events
    .command('replay')
    .description('publish events again, with the ids they had')
    .requiredOption('--since <when>', 'ISO 8601 time, or how long ago: 90s, 30m, 24h, 7d')
    .action((options: { since: string }, command: Command) =>
      withToolbox(async ({ config, mysql, redis }) => {
        const clock = await startClock(mysql());
        clock.stop();
        const since = readWhen(options.since, clock.now());
        const bar = new SingleBar({ format: 'replay {bar} {percentage}% {published} events', stream: process.stderr });
        bar.start(100, 0, { published: 0 });
        const opened = await redis();
        const needs = { config, mysql: mysql(), redis: opened, scripts: loadScripts(opened) };
        const published = await replay(needs, since, (soFar) => bar.update(Math.floor(soFar.share * 100), { published: soFar.published }));
        bar.stop();
        report(command, `published ${published} events again`, { published, since: since.toISOString() });
      }),
    );
  return events;
}

function readWhen(text: string, now: number): Date {
  try {
    return readSince(text, now);
  } catch (error) {
    throw new Failure(`--since: ${(error as Error).message}`);
  }
}
