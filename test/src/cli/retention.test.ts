import t from 'tap';
import { cli, cliOnTerminal } from '../../support/cli.js';
import { count, seedDue, taskNeeds } from '../../support/due.js';

t.test('a dry run counts what is due, a run purges it, and both say so', async (t) => {
  const { env, mysql } = await taskNeeds(t);
  await seedDue(mysql, 3);
  const run = cli(env);
  t.match(await run('retention', 'run', '--dry-run'), { code: 0, out: '3 accounts are due\n', err: '' });
  t.strictSame(JSON.parse((await run('retention', 'run', '--dry-run', '--json')).out), { due: 3, purged: 0, dryRun: true });
  t.equal(await count(mysql, 'users'), 3, 'a dry run changes nothing');
  t.match(await run('retention', 'run', '--share', '1', '--json'), { code: 0, out: '{"due":3,"purged":3,"dryRun":false}\n', err: '' });
  t.equal(await count(mysql, 'users'), 0);
  t.match(await run('retention', 'run'), { code: 0, out: 'purged 0 of 0 due accounts\n', err: '' });
});

t.test('a purge shows its progress on a terminal', async (t) => {
  const { env, mysql } = await taskNeeds(t);
  await seedDue(mysql, 20);
  const { code, out } = await cliOnTerminal(env, ['retention', 'run', '--share', '1']);
  t.equal(code, 0);
  t.match(out, /purge =+ 100% 20 of 20 accounts[^]*purged 20 of 20 due accounts/);
});

t.test('the days of retention are those of the settings, and never below the grace days', async (t) => {
  const { env, mysql } = await taskNeeds(t);
  await seedDue(mysql, 1);
  t.match(await cli({ ...env, ACCOUNT_RETENTION_DAYS: '32' })('retention', 'run', '--dry-run'), { code: 0, out: '0 accounts are due\n' });
  t.match(await cli({ ...env, ACCOUNT_RETENTION_DAYS: '29' })('retention', 'run'), { code: 1, out: '', err: /ACCOUNT_RETENTION_DAYS must not be below/ });
  t.equal(await count(mysql, 'users'), 1);
});
