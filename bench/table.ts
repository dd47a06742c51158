import type { Row, Target } from './findings.js';
import type { Spread } from './numbers.js';
import { MOST_OTHERS, type Results } from './results.js';

const HEAD = ['', 'per s', 'lowest to highest', 'p50 ms', 'p99 ms', 'lowest to highest', 'CPU µs', 'idle', 'load', ''];

/** The findings as text: figures right-aligned under their heads, then the targets. */
export function renderTable({ scenarios, others }: Results): string {
  const groups = scenarios.map(([name, { rows, faults }]) => [name, rows.map(cells), faults] as const);
  const widths = HEAD.map((head, column) => Math.max(head.length, ...groups.flatMap(([, rows]) => rows.map((row) => row[column]!.length))));
  const line = (row: readonly string[]): string => row.map((text, column) => (column === 0 || column === HEAD.length - 1 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!))).join('  ').trimEnd();
  const body = groups.flatMap(([name, rows, faults]) => ['', name, ...(rows.length === 0 ? faults : rows.map(line)).map((row) => `  ${row}`)]);
  return [`  ${line(HEAD)}`, ...body, '', ...renderTargets(scenarios.flatMap(([, { targets }]) => targets), others)].join('\n');
}

function cells({ what, perSecond, p50, p99, cpuUs, idle, load, note }: Row): string[] {
  const rate = perSecond && perSecond.median < 1000 ? 1 : 0;
  const percent = (share: Spread | null): string => (share ? `${Math.round(share.median * 100)} %` : '-');
  return [what, middle(perSecond, rate), range(perSecond, rate), middle(p50, 1), middle(p99, 1), range(p99, 1), middle(cpuUs, 0), percent(idle), percent(load), note];
}

const grouped = (value: number, digits: number): string => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const middle = (spread: Spread | null, digits: number): string => (spread ? grouped(spread.median, digits) : '-');
const range = (spread: Spread | null, digits: number): string => (spread ? `${grouped(spread.lowest, digits)} to ${grouped(spread.highest, digits)}` : '-');

function renderTargets(targets: Target[], others: number): string[] {
  const [what, wanted] = [Math.max(0, ...targets.map((target) => target.what.length)), Math.max(0, ...targets.map((target) => wantedText(target).length))];
  return targets.map((target) => `target: ${target.what.padEnd(what)}  ${wantedText(target).padEnd(wanted)}  ${gotText(target)}: ${verdict(target, others)}`);
}

/** `at least 0.95`, `at most 50 ms`. */
export const wantedText = ({ wanted, unit }: Target): string => ('atLeast' in wanted ? `at least ${figure(wanted.atLeast, unit)}` : `at most ${figure(wanted.atMost, unit)}`);

/** `0.78 (0.77 to 0.79)`. */
export const gotText = ({ got, unit, why }: Target): string => (got ? `${figure(got.median, unit)} (${figure(got.lowest, unit, true)} to ${figure(got.highest, unit, true)})` : why || 'not measured');

function verdict({ met }: Target, others: number): string {
  if (met === null) return 'not measured';
  return others > MOST_OTHERS ? `undecided, others used ${Math.round(others * 100)} % of the cores` : met ? 'met' : 'MISSED';
}

function figure(value: number, unit: Target['unit'], bare = false): string {
  const digits = unit === '' ? 2 : Number.isInteger(value) || Math.abs(value) >= 1000 ? 0 : 1;
  return `${grouped(value, digits)}${bare || unit === '' ? '' : ` ${unit}`}`;
}
