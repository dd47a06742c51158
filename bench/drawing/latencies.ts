import type { Spread } from '../numbers.js';
import type { Find } from './rates.js';
import { dot, foot, line, picture, scale, text } from './svg.js';

const [WIDTH, TOP, ROW] = [860, 84, 40];
const [LEFT, RIGHT] = [330, 830];
const TICKS: [number, string][] = [[0.1, '0.1 ms'], [1, '1 ms'], [10, '10 ms'], [100, '100 ms'], [1_000, '1 s'], [10_000, '10 s']];

const place = scale(0.1, 10_000, LEFT, RIGHT, Math.log10);

/** Scenario, row, label, and the target in ms. */
const entries = (queueMs: number): [string, string, string, number | null][] => [
  ['mixed', 'profile-alone', 'profile, alone', null],
  ['mixed', 'profile-beside', 'profile, while logins fill the pool', 10],
  ['overload', 'refresh-storm', 'refresh, in a storm of logins', 50],
  ['overload', 'refused', '503, in a storm of logins', 50],
  ['overload', 'login-storm', 'accepted login, in a storm', 2 * queueMs],
  ['flood', 'neighbour', 'login beside a flooding address', 1_000],
];

/** From p50 to p99 at the limit and beyond it, each with the most that its p99 may take. */
export function latenciesChart(find: Find, queueMs: number, footer: string[]): string {
  const known = entries(queueMs).flatMap(([scenario, id, label, most]) => {
    const row = find(scenario, id);
    return row?.p50 && row.p99 ? [{ label, most, p50: row.p50, p99: row.p99 }] : [];
  });
  const height = TOP + known.length * ROW + 52;
  const grid = TICKS.flatMap(([ms, label]) => [line(place(ms), TOP - 14, place(ms), height - 56, ''), text(place(ms), TOP - 22, 'small middle faint', label)]);
  const rows = known.flatMap(({ label, most, p50, p99 }, n) => {
    const y = TOP + n * ROW + 12;
    const target = most === null ? [] : [line(place(most), y - 12, place(most), y + 12, 'mark')];
    return [text(24, y - 1, '', label), text(24, y + 14, 'small faint', numbers(p50, p99, most)), line(place(p50.median), y, place(p99.median), y, 'own-line'), dot(place(p99.median), y, most !== null && p99.median > most ? 'bad' : 'own'), ...target];
  });
  return picture(WIDTH, height, 'Latency from p50 to p99; an upright mark is the most that p99 may take', [...grid, ...rows, ...foot(height - 14, footer)]);
}

function numbers(p50: Spread, p99: Spread, most: number | null): string {
  const ms = (value: number): string => (value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en'));
  return `p50 ${ms(p50.median)}, p99 ${ms(p99.median)} ms${most === null ? '' : ` (at most ${ms(most)})`}`;
}
