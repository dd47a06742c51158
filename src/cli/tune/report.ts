import { perSecondElsewhere, perSecondUndisturbed, type Cell, type Choice, type Wish } from './capacity.js';
import { renderChart, renderTable, type Look } from './chart.js';
import type { Check, Machine } from './measure.js';
import type { Kind } from './stores.js';

/** Everything that a run found out. */
export interface Found {
  machine: Machine;
  /** Share of all cores that others used before it began. */
  others: number;
  engine: string;
  stores: Kind;
  cells: Cell[];
  choice: Choice | null;
  checked: Check | null;
}

const STORES: Record<Kind, string> = { own: 'MySQL, Redis and the client on the same cores', given: 'MySQL and Redis as given, the client on the same cores', none: 'without MySQL and Redis, the client on the same cores' };

/** With more of the machine than this in other hands, the figures say little. */
const MOST_OTHERS = 0.1;

const rounded = (value: number): number => Math.round(value * 10) / 10;
const settingsOf = ({ cell: { threads, cost } }: Choice): Record<string, number> => ({ HASH_THREADS: threads, ARGON2_MEMORY_KIB: cost.memoryKib, ARGON2_PASSES: cost.passes });

/** For --json: rates per second, times in ms but for `cpu`, which is µs a login. */
export function asJson({ cells, choice, checked, ...rest }: Found, wish: Wish): Record<string, unknown> {
  const recommended = choice && {
    settings: settingsOf(choice),
    isEnough: choice.isEnough,
    loginsPerS: rounded(choice.cell.perSecond),
    loginsPerSWithinTarget: rounded(choice.within),
    loginsPerSElsewhere: perSecondElsewhere(choice.cell),
    checked,
  };
  return { ...rest, ...wish, cells: cells.map(({ cost, ...cell }) => ({ ...cost, ...cell })), recommended };
}

export function asText(found: Found, wish: Wish, look: Look): string {
  const { cells, choice } = found;
  const lines = [...heading(found), '', renderTable(cells, choice?.cell ?? null, look), '', renderChart(cells, choice?.cell ?? null, look)];
  if (!choice) return lines.join('\n');
  const wished = `99 of 100 logins within ${wish.targetMs} ms${wish.loginsPerS === null ? '' : ` at ${wish.loginsPerS} logins/s`}`;
  const settings = Object.entries(settingsOf(choice)).map(([name, value]) => `  ${name}=${value}`);
  return [...lines, '', `${choice.isEnough ? 'Recommended for' : 'Nearest to'} ${wished}:`, '', ...settings, '', ...expectations(found, choice, wish)].join('\n');
}

function heading({ machine, others, engine, stores }: Found): string[] {
  const lines = [`${machine.cores} cores (${machine.cpu}), ${machine.memoryGiB} GiB, Node ${machine.node}, engine ${engine}; ${STORES[stores]}`];
  if (stores === 'none') lines.push('What MySQL and Redis ask of a login is not in these figures: with them it is fewer.');
  if (others > MOST_OTHERS) lines.push(`Others used ${Math.round(others * 100)} % of the cores before it began: run it again when the machine is idle.`);
  return lines;
}

function expectations({ checked, machine, others }: Found, { cell, within }: Choice, { targetMs }: Wish): string[] {
  const { cpu, cost, threads, perSecond } = cell;
  const rows = [
    ['at most', `${rounded(perSecond)} logins/s, while more are always waiting`],
    [`within ${targetMs} ms`, `${rounded(within)} logins/s at random moments, by calculation`],
    ...(checked ? [['tried', `${rounded(checked.perSecond)} logins/s at random moments: 99 of 100 within ${rounded(checked.p99)} ms${checked.isHeld ? '' : ', which misses the target'}`]] : []),
    ['memory', `${threads} x ${cost.memoryKib / 1024} MiB while all threads hash`],
  ];
  const [elsewhere, undisturbed] = [perSecondElsewhere(cell), perSecondUndisturbed(cell, machine.cores)];
  if (cpu && elsewhere !== null && undisturbed !== null) {
    const ms = (us: number): string => (us / 1000).toFixed(2);
    rows.push(['CPU per login', `${ms(cpu.hash)} ms hashing, ${ms(cpu.service)} ms the rest of the service, ${ms(cpu.stores)} ms MySQL and Redis, ${ms(cpu.load)} ms the client, ${ms(cpu.others)} ms the rest`]);
    if (others > MOST_OTHERS) rows.push(['undisturbed', `about ${rounded(undisturbed)} logins/s at most without the other programs, by calculation`]);
    else rows.push(['elsewhere', `about ${rounded(elsewhere)} logins/s at most on these ${machine.cores} cores when only the service runs on them`]);
  }
  const width = Math.max(...rows.map(([name]) => name!.length));
  return rows.map(([name, text]) => `  ${name!.padEnd(width)}  ${text!}`);
}
