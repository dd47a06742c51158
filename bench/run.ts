import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../src/config/load.js';
import { describeFacts } from './machine.js';
import { readOptions, USAGE, type Plan, type ScenarioName } from './options.js';
import type { Finding } from './rounds.js';
import { login } from './scenarios/login.js';
import { mixed } from './scenarios/mixed.js';
import { overload } from './scenarios/overload.js';
import { profile } from './scenarios/profile.js';
import { refresh } from './scenarios/refresh.js';
import { FOLDER, openStage, type Stage } from './stage.js';
import { renderTable } from './table.js';

const SCENARIOS: Record<ScenarioName, (stage: Stage) => Promise<Finding>> = { login, refresh, profile, mixed, overload };

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
    const findings: [ScenarioName, Finding][] = [];
    for (const name of plan.only) findings.push([name, await SCENARIOS[name](stage)]);
    return report(stage, findings);
  } catch (error) {
    // What breaks while everything is being stopped is no news.
    if (interrupted) return await new Promise<never>(() => undefined);
    throw error;
  } finally {
    if (!interrupted) await closeAll();
  }
}

function report(stage: Stage, findings: [ScenarioName, Finding][]): number {
  const { facts, plan } = stage;
  const others = stage.others();
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, 'latest.json');
  writeFileSync(path, `${JSON.stringify({ facts, plan, others, scenarios: Object.fromEntries(findings) }, null, 2)}\n`);
  process.stdout.write(`\n${describeFacts(facts)}\n${plan.rounds} rounds of ${plan.measureMs / 1000} s each, medians; all programs share the cores; others used ${Math.round(others * 100)} % of them\n\n${renderTable(findings, others)}\n`);
  say(`\nwritten to ${path}`);
  const faults = findings.flatMap(([, finding]) => finding.faults);
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
