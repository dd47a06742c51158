import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { ROWS, type Row } from '../faults/rows.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The rows that some test gives a figure of. */
function carried(): Set<string> {
  const folder = join(ROOT, 'test');
  const files = readdirSync(folder, { recursive: true }).map(String).filter((name) => name.endsWith('.test.ts'));
  const texts = files.map((name) => readFileSync(join(folder, name), 'utf8')).filter((text) => text.includes('/figures.js'));
  return new Set(texts.flatMap((text) => [...text.matchAll(/'(T\d\d)'/g)].map((match) => match[1]!)));
}

t.test('the list of faults has every number once, in order', (t) => {
  t.same(Object.keys(ROWS), Array.from({ length: 67 }, (_, i) => `T${String(i + 1).padStart(2, '0')}`));
  t.end();
});

t.test('a row has a test that gives a figure of it, or a reason why not', (t) => {
  const found = carried();
  for (const [id, row] of Object.entries<Row>(ROWS)) t.equal(found.has(id), row.unmeasured === undefined, `${id}: ${row.threat}`);
  t.end();
});

t.test('the page of faults has a line for every row', (t) => {
  const page = readFileSync(join(ROOT, 'docs/faults.md'), 'utf8');
  for (const id of Object.keys(ROWS)) t.ok(page.includes(`| ${id} |`), id);
  t.end();
});
