import t from 'tap';
import { GENERATED } from '../../src/cli/docs.js';
import { loadConfig, settings } from '../../src/config/load.js';
import { textOf } from './imports.js';

t.test('every generated document is what the code says: npm run generate', (t) => {
  t.ok(Object.keys(GENERATED).length >= 4);
  for (const [path, render] of Object.entries(GENERATED)) t.equal(textOf(path), render(textOf(path)), path);
  t.end();
});

t.test('.env.example is a usable environment once the required settings are filled in', (t) => {
  const lines = textOf('.env.example').split('\n');
  const env = Object.fromEntries(lines.flatMap((line) => (/^#?[A-Z][A-Z0-9_]*=/.test(line) ? [line.replace(/^#/, '').split(/=(.*)/s).slice(0, 2)] : [])) as [string, string][]);
  const given = { MYSQL_URL: 'mysql://u:p@127.0.0.1/db', REDIS_URL: 'redis://127.0.0.1', SECRET_KEY: Buffer.alloc(32, 7).toString('base64') };
  t.same(Object.keys(env).sort(), settings().map(([, row]) => row.env).sort());
  t.same(loadConfig({ ...env, ...given }), loadConfig(given), 'its values are the defaults');
  t.end();
});
