import type { Target } from '../findings.js';
import { gotText, wantedText } from '../table.js';
import { diamond, dot, foot, line, picture, scale, text } from './svg.js';

const [WIDTH, TOP, ROW] = [860, 78, 38];
const [LEFT, RIGHT] = [470, 830];
/** Ends of the axis, as multiples of a target. */
const [LEAST, MOST] = [0.25, 8];
const TICKS: [number, string][] = [[0.25, '¼'], [0.5, '½'], [1, 'target'], [2, '2 ×'], [4, '4 ×'], [8, '8 ×']];

const place = scale(LEAST, MOST, LEFT, RIGHT, Math.log2);

/** How many times as good as promised, 1 being just that. */
function reach({ wanted }: Target, value: number): number {
  if ('atLeast' in wanted) return value / wanted.atLeast;
  return value <= 0 ? MOST : wanted.atMost / value;
}

/** Every promise of the table as one line: the median and its spread, left of the target or right of it. */
export function figuresChart(targets: Target[], footer: string[]): string {
  const height = TOP + targets.length * ROW + 56;
  const grid = TICKS.flatMap(([value, label]) => [
    line(place(value), TOP - 12, place(value), height - 56, value === 1 ? 'mark' : ''),
    text(place(value), TOP - 20, 'small middle faint', label),
  ]);
  const rows = targets.flatMap((target, n) => {
    const y = TOP + n * ROW + 10;
    return [text(24, y, '', target.what), text(24, y + 15, 'small faint', `${wantedText(target)}: ${gotText(target)}`), ...marker(target, y + 3)];
  });
  return picture(WIDTH, height, 'Figures against their targets: right of the line is better', [...legend(), ...grid, ...rows, ...foot(height - 16, footer)]);
}

const legend = (): string[] => [dot(716, 29, 'good'), text(727, 33, 'small', 'met'), diamond(766, 29, 'bad'), text(778, 33, 'small', 'missed')];

function marker(target: Target, y: number): string[] {
  const { got, met } = target;
  if (!got) return [text(place(1) + 10, y + 4, 'small faint', 'not measured')];
  const [look, draw] = met ? ['good', dot] : ['bad', diamond];
  const at = (value: number): number => place(reach(target, value));
  return [line(at(got.lowest), y, at(got.highest), y, `${look}-line`), draw(at(got.median), y, look)];
}
