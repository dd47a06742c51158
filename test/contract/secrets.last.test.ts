import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { figure } from '../support/figures.js';
import { searchOf } from '../support/secrets.js';

const folder = process.env['SECRETS_FOLDER'] ?? '';
const outputs = process.env['OUTPUTS_FOLDER'] ?? '';

t.test('no password, code, token or key of this run stands in any database, key, log or output', { skip: existsSync(folder) ? false : 'no run of the whole suite kept its secrets' }, (t) => {
  const { secrets, searched, looks, found } = searchOf(folder);
  // What the tests and the services in their processes printed.
  const printed = existsSync(outputs) ? readdirSync(outputs).map((name) => readFileSync(join(outputs, name), 'utf8')).join('\n') : '';
  const inPrint = secrets.in(printed).map((what) => `printed: ${what}`);
  t.ok(secrets.size > 500, `${secrets.size} secrets`);
  for (const place of ['MySQL', 'Redis', 'log', 'output'] as const) t.ok(searched[place] > 10_000, `${searched[place]} characters of ${place}`);
  t.same([...new Set([...found, ...inPrint])], []);
  const sizes = Object.entries({ ...searched, printed: printed.length }).map(([place, length]) => `${place} ${(length / 2 ** 20).toFixed(1)}`);
  figure(t, 'T59', {
    did: `${secrets.size} secrets of the tests of this run looked for in ${looks} databases, servers of Redis, logs and outputs`,
    figure: `${found.length + inPrint.length} found (MiB searched: ${sizes.join(', ')})`,
    ok: found.length + inPrint.length === 0,
  });
  t.end();
});
