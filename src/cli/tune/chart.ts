import type { Cell } from './capacity.js';
import { costText } from './grid.js';

/** How the terminal wants it. */
export interface Look {
  width: number;
  /** Whether block characters can be shown. */
  isUnicode: boolean;
  isColoured: boolean;
}

export function lookOf(stream: { isTTY?: boolean; columns?: number }, env: NodeJS.ProcessEnv): Look {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  const isTerminal = stream.isTTY === true && env['TERM'] !== 'dumb';
  return { width: Math.max(40, stream.columns ?? 80), isUnicode: /utf-?8/i.test(locale), isColoured: isTerminal && !env['NO_COLOR'] };
}

const figure = (value: number): string => (value < 100 ? value.toFixed(1) : value.toFixed(0));

/** Logins per second by cost and number of threads, the one to recommend in brackets. */
export function renderTable(cells: Cell[], chosen: Cell | null, look: Look): string {
  const threads = [...new Set(cells.map((cell) => cell.threads))];
  const costs = [...new Set(cells.map((cell) => cell.cost))];
  const rows = costs.map((cost) => {
    const of = cells.filter((cell) => cell.cost === cost);
    const rates = threads.map((count) => {
      const cell = of.find((one) => one.threads === count);
      return !cell ? '-' : cell === chosen ? `[${figure(cell.perSecond)}]` : `${figure(cell.perSecond)} `;
    });
    return [costText(cost), ...rates, `${of[0]!.aloneMs.toFixed(1)} ms`];
  });
  const head = ['argon2id', ...threads.map((count) => `${count} `), 'alone'];
  const widths = head.map((text, column) => Math.max(text.length, ...rows.map((row) => row[column]!.length)));
  const line = (row: string[]): string => row.map((text, column) => (column === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[column]!))).join('  ');
  const lines = rows.map((row, n) => (chosen?.cost === costs[n] ? emphasis(line(row), look) : line(row)));
  return ['logins/s by hashing threads, and how long a login takes alone', '', `  ${line(head)}`, ...lines.map((text) => `  ${text}`)].join('\n');
}

/** The same as bars, one for each cost and number of threads. */
export function renderChart(cells: Cell[], chosen: Cell | null, look: Look): string {
  const most = Math.max(...cells.map(({ perSecond }) => perSecond));
  const label = Math.max(...cells.map(({ cost }) => costText(cost).length));
  const room = Math.max(8, look.width - label - 5 - 8);
  let last = '';
  return [...cells]
    .sort((a, b) => b.cost.memoryKib - a.cost.memoryKib || a.threads - b.threads)
    .map((cell) => {
      const name = costText(cell.cost);
      const text = `${(name === last ? '' : name).padEnd(label)}  ${String(cell.threads).padStart(3)} ${bar((cell.perSecond / most) * room, look)} ${figure(cell.perSecond)}`;
      last = name;
      return cell === chosen ? emphasis(text, look) : text;
    })
    .join('\n');
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

function bar(length: number, { isUnicode }: Look): string {
  if (!isUnicode) return '#'.repeat(Math.max(1, Math.round(length)));
  const eighths = Math.max(1, Math.round(length * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}

const emphasis = (text: string, { isColoured }: Look): string => (isColoured ? `\u001b[1;32m${text}\u001b[0m` : text);
