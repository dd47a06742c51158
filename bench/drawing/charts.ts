import { MOST_OTHERS, type Results } from '../results.js';
import { figuresChart } from './figures.js';
import { latenciesChart } from './latencies.js';
import { ratesChart, type Find } from './rates.js';

/** File names with their SVG; a chart for which nothing was measured is left out. */
export function drawCharts({ scenarios, facts, plan, others }: Results): [string, string][] {
  const disturbed = others > MOST_OTHERS ? `; NOT conclusive: others used ${Math.round(others * 100)} % of the cores` : '';
  const database = facts.mysql.replace(/^([\d.]+)-MariaDB.*/, 'MariaDB $1');
  const footer = [
    `Medians of ${plan.rounds} rounds of ${plan.measureMs / 1000} s, with lowest and highest${disturbed}`,
    `${facts.at.slice(0, 10)}, ${facts.cores} cores (${facts.cpu}) with everything on them: load programs, ${database}, ${facts.redis}, servers`,
  ];
  const find: Find = (scenario, id) => scenarios.find(([name]) => name === scenario)?.[1].rows.find((row) => row.id === id) ?? null;
  const targets = scenarios.flatMap(([, finding]) => finding.targets);
  const has = (...names: string[]): boolean => scenarios.some(([name, { rows }]) => names.includes(name) && rows.length > 0);
  return [
    ...(targets.length > 0 ? [['figures.svg', figuresChart(targets, footer)] satisfies [string, string]] : []),
    ...(has('login', 'profile', 'refresh') ? [['rates.svg', ratesChart(find, footer)] satisfies [string, string]] : []),
    ...(has('mixed', 'overload', 'flood') ? [['latencies.svg', latenciesChart(find, facts.queueMs, footer)] satisfies [string, string]] : []),
  ];
}
