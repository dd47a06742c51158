import t from 'tap';
import type { Cell } from '../../../../src/cli/tune/capacity.js';
import { lookOf, renderChart, renderTable } from '../../../../src/cli/tune/chart.js';
import { COSTS, threadCounts } from '../../../../src/cli/tune/grid.js';

const cells: Cell[] = [1, 2, 4].flatMap((threads) => COSTS.slice(0, 2).map((cost, n) => ({ cost, threads, perSecond: 50 * threads * (n + 1), aloneMs: 10 + n, cpu: null, idle: 0 })));
const plain = { width: 60, isUnicode: false, isColoured: false };

t.test('the table has a row for each cost and a column for each number of threads, with the recommended one in brackets', (t) => {
  t.equal(
    renderTable(cells, cells[3]!, plain),
    [
      'logins/s by hashing threads, and how long a login takes alone',
      '',
      '  argon2id       1      2     4     alone',
      '  46 MiB x 1  50.0    100   200   10.0 ms',
      '  19 MiB x 2   100   [200]  400   11.0 ms',
    ].join('\n'),
  );
  t.end();
});

t.test('the chart fits the terminal, with blocks or in plain ASCII, and is coloured only where that was asked for', (t) => {
  for (const width of [40, 60, 200]) {
    for (const isUnicode of [false, true]) {
      const lines = renderChart(cells, cells[3]!, { width, isUnicode, isColoured: false }).split('\n');
      t.equal(lines.length, 6);
      t.ok(Math.max(...lines.map((line) => line.length)) <= width, `${width} columns`);
      t.equal(lines.some((line) => /[^ -~]/.test(line)), isUnicode);
      const bars = lines.map((line) => (/[#█-▏]+/.exec(line)?.[0] ?? '').length);
      t.ok(bars.at(-1)! > 3 * bars[0]!, 'longer bars for more');
    }
  }
  t.notMatch(renderChart(cells, cells[3]!, plain), '\u001b');
  const coloured = renderChart(cells, cells[3]!, { ...plain, isColoured: true }).split('\n').filter((line) => line.includes('\u001b'));
  t.equal(coloured.length, 1);
  t.ok(coloured[0]!.startsWith('\u001b[1;32m') && coloured[0]!.endsWith('\u001b[0m'));
  t.end();
});

t.test('how it looks follows the terminal', (t) => {
  t.same(lookOf({}, {}), { width: 80, isUnicode: false, isColoured: false });
  t.same(lookOf({ isTTY: true, columns: 120 }, { LANG: 'de_DE.UTF-8', TERM: 'xterm' }), { width: 120, isUnicode: true, isColoured: true });
  t.same(lookOf({ isTTY: true, columns: 20 }, { LANG: 'C.utf8', LC_ALL: 'C', TERM: 'dumb' }), { width: 40, isUnicode: false, isColoured: false });
  t.match(lookOf({ isTTY: true, columns: 80 }, { NO_COLOR: '1', TERM: 'xterm' }), { isColoured: false });
  t.end();
});

t.test('numbers of threads go from one to twice the cores', (t) => {
  t.same(threadCounts(2, false), [1, 2, 3, 4]);
  t.same(threadCounts(2, true), [1, 2, 4]);
  t.same(threadCounts(1, true), [1, 2]);
  t.same(threadCounts(16, false), [1, 4, 8, 12, 16, 20, 24, 32]);
  t.same(threadCounts(192, true), [1, 96, 192, 256]);
  t.end();
});
