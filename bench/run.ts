import { join } from 'node:path';
import { ConfigError } from '../src/config/load.js';
import type { Finding } from './findings.js';
import { readOptions, USAGE, type Plan, type ScenarioName } from './options.js';
import { render, save } from './report.js';
import type { Results } from './results.js';
import { flood } from './scenarios/flood.js';
import { login } from './scenarios/login.js';
import { memory } from './scenarios/memory.js';
import { mixed } from './scenarios/mixed.js';
import { overload } from './scenarios/overload.js';
import { profile } from './scenarios/profile.js';
import { refresh } from './scenarios/refresh.js';
import { scale } from './scenarios/scale.js';
import { tune } from './scenarios/tune.js';
import { FOLDER, openStage, type Stage } from './stage.js';

const SCENARIOS: Record<ScenarioName, (stage: Stage) => Promise<Finding>> = { login, profile, refresh, mixed, overload, flood, scale, memory, tune };

/** Progress goes to standard error, so that standard output holds the table alone. */
const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function bench(plan: Plan): Promise<number> {
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = closers.pop(); close; close = closers.pop()) await close().catch((error: unknown) => say(`while stopping: ${String(error)}`));
  };
  let interrupted = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (interrupted) return;
      interrupted = true;
      say('stopping');
      void closeAll().then(() => process.exit(130));
    });
  }
  try {
    const stage = await openStage(plan, say, closers);
    const scenarios: [ScenarioName, Finding][] = [];
    const results = (): Results => ({ facts: stage.facts, plan, others: stage.others(), scenarios });
    for (const name of plan.only) {
      scenarios.push([name, await attempt(name, stage)]);
      // What breaks while everything is being stopped is no news.
      if (interrupted) return await new Promise<never>(() => undefined);
      save(results(), FOLDER);
    }
    return report(results());
  } finally {
    if (!interrupted) await closeAll();
  }
}

/** A scenario that fails takes its own figures along and no others. */
async function attempt(name: ScenarioName, stage: Stage): Promise<Finding> {
  const began = performance.now();
  try {
    return await SCENARIOS[name](stage);
  } catch (error) {
    return { rows: [], targets: [], faults: [`${name} could not be measured: ${(error as Error).message}`] };
  } finally {
    say(`${name} took ${Math.round((performance.now() - began) / 1000)} s`);
  }
}

function report(results: Results): number {
  process.stdout.write(`\n${render(results)}`);
  say(`\nwritten to ${join(FOLDER, 'latest.json')} and ${join(FOLDER, 'charts')}`);
  const faults = results.scenarios.flatMap(([, finding]) => finding.faults);
  for (const fault of faults) say(`unexpected: ${fault}`);
  return faults.length === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  let plan: Plan | null;
  try {
    plan = readOptions(process.argv.slice(2));
  } catch (error) {
    say(`${(error as Error).message}\n\n${USAGE}`);
    return 1;
  }
  if (plan) return bench(plan);
  process.stdout.write(USAGE);
  return 0;
}

try {
  process.exit(await main());
} catch (error) {
  say(error instanceof ConfigError ? `${error.message}\nRun it by npm run bench, which provides the servers.` : ((error as Error).stack ?? String(error)));
  process.exit(1);
}
