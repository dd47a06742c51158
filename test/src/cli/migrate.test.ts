import t from 'tap';
import { testEnv } from '../../support/app.js';
import { cli } from '../../support/cli.js';
import { emptyDatabase } from '../../support/stores.js';
import { readMigrations } from '../../../src/store/migrate.js';

t.test('migrate applies what is missing and says so, the second time nothing', async (t) => {
  const run = cli(testEnv(await emptyDatabase(t), 'redis://127.0.0.1:1'));
  const names = readMigrations().map(({ name }) => name);
  t.match(await run('migrate'), { code: 0, out: `applied ${names.join(', ')}\n`, err: '' });
  t.match(await run('migrate'), { code: 0, out: 'the database is up to date\n', err: '' });
  t.match(await run('migrate', '--json'), { code: 0, out: '{"applied":[]}\n', err: '' });
});
