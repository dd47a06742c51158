import type { Finding, Row, Target } from './rounds.js';

const HEAD = ['', 'per s', 'p50 ms', 'p99 ms', 'CPU µs', 'idle', ''];

/**
 * The findings as text: figures right-aligned under their heads, then the targets.
 * @param others share of all cores that others used
 */
export function renderTable(findings: [string, Finding][], others: number): string {
  const groups = findings.map(([name, { rows }]) => [name, rows.map(cells)] as const);
  const widths = HEAD.map((head, column) => Math.max(head.length, ...groups.flatMap(([, rows]) => rows.map((row) => row[column]!.length))));
  const line = (row: readonly string[]): string => row.map((text, column) => (column === 0 || column === HEAD.length - 1 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!))).join('  ').trimEnd();
  const body = groups.flatMap(([name, rows]) => ['', name, ...rows.map((row) => `  ${line(row)}`)]);
  return [`  ${line(HEAD)}`, ...body, '', ...renderTargets(findings.flatMap(([, { targets }]) => targets), others)].join('\n');
}

function cells({ what, perSecond, p50, p99, cpuUs, idle, note }: Row): string[] {
  const figure = (value: number | null, digits: number): string => (value === null ? '-' : grouped(value, digits));
  return [what, grouped(perSecond, perSecond < 1000 ? 1 : 0), figure(p50, 1), figure(p99, 1), figure(cpuUs, 0), idle === null ? '-' : `${Math.round(idle * 100)} %`, note];
}

const grouped = (value: number, digits: number): string => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** With more of the machine than this in other hands, a target is neither met nor missed. */
const MOST_OTHERS = 0.1;

function renderTargets(targets: Target[], others: number): string[] {
  const width = Math.max(0, ...targets.map(({ what }) => what.length));
  return targets.map(({ what, wanted, got, met }) => `target: ${what.padEnd(width)}  ${wanted}: ${got}, ${others > MOST_OTHERS ? `undecided: others used ${Math.round(others * 100)} % of the cores` : met ? 'met' : 'MISSED'}`);
}
