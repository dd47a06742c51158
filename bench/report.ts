import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawCharts } from './drawing/charts.js';
import { describeFacts } from './machine.js';
import { SCENARIOS } from './options.js';
import type { Results } from './results.js';
import { renderTable } from './table.js';

/** In the source tree: what is committed of a run. */
const HOME = fileURLToPath(new URL('../../bench/', import.meta.url));
const MARKS = ['<!-- last results -->', '<!-- end of last results -->'] as const;

/** Results as JSON and charts; called after each scenario too, so that nothing is lost with a later one. */
export function save(results: Results, folder: string): void {
  write(folder, 'latest.json', `${JSON.stringify(results, null, 2)}\n`);
  for (const [name, svg] of drawCharts(results)) write(join(folder, 'charts'), name, svg);
}

/** Everything a run found, as text. */
export function render(results: Results): string {
  const { facts, plan, others } = results;
  const how = `${plan.rounds} rounds of ${plan.measureMs / 1000} s each, medians; all programs share the cores; others used ${Math.round(others * 100)} % of them`;
  return `${describeFacts(facts)}\n${how}\n\n${renderTable(results)}\n`;
}

/** Puts results, charts and the table where they are committed. */
export function publish(results: Results): void {
  write(join(HOME, 'results'), 'latest.json', `${JSON.stringify(results, null, 2)}\n`);
  for (const [name, svg] of drawCharts(results)) write(join(HOME, 'charts'), name, svg);
  const path = join(HOME, 'README.md');
  const text = readFileSync(path, 'utf8');
  const [from, to] = [text.indexOf(MARKS[0]), text.indexOf(MARKS[1])];
  if (from < 0 || to < from) throw new Error(`bench/README.md has lost its marks ${MARKS.join(' and ')}`);
  const day = results.facts.at.slice(0, 10);
  const images = drawCharts(results).map(([name]) => `![${name}](charts/${name})\n`).join('');
  const section = `${MARKS[0]}\n\nOf \`npm run bench${options(results)}\`, ${day}:\n\n${images}\n\`\`\`\n${render(results)}\`\`\`\n\n`;
  writeFileSync(path, text.slice(0, from) + section + text.slice(to));
}

function options({ plan }: Results): string {
  const list = [...(plan.quick ? ['--quick'] : []), ...(plan.only.length < SCENARIOS.length ? [`--only ${plan.only.join(',')}`] : [])];
  return list.length === 0 ? '' : ` -- ${list.join(' ')}`;
}

function write(folder: string, name: string, text: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
}
