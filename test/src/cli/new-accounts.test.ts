import t from 'tap';
import { subjectOf } from '../../../src/keyring.js';
import { startApp } from '../../support/app.js';
import { cli, fileOf } from '../../support/cli.js';

const { app, env } = await startApp(t);
const { mysql } = app.needs;
const run = cli(env);
const jsonl = (lines: object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

t.test('each account that is new has an audit entry and an event, those that existed have none', async (t) => {
  const noted = async (email: string): Promise<unknown[]> => mysql.rows("SELECT a.action, a.status, a.ip_address AS ip, e.type, e.message FROM users u JOIN audit_log a ON a.user_id = u.id LEFT JOIN event_outbox e ON e.user_id = u.id WHERE u.email = ?", [email]);
  const lines = ['a', 'b'].map((name) => ({ email: `${name}@noted.example`, passwordHash: `$2b$10$${'e'.repeat(53)}` }));
  await run('user', 'import', fileOf(t, jsonl(lines.slice(0, 1))));
  t.equal((await run('user', 'import', fileOf(t, jsonl(lines)))).code, 1, 'one of the two is there already');
  for (const { email } of lines) {
    const [entry, ...more] = (await noted(email)) as { message: string }[];
    t.match(entry, { action: 'account.imported', status: 'success', ip: null, type: 'identity.user.created' });
    t.match(JSON.parse(entry!.message), { type: 'identity.user.created', email, by: 'import' });
    t.same(more, []);
  }
  const { id } = JSON.parse((await cli(env, 'a password')('user', 'create', '--email', 'c@noted.example', '--password-stdin', '--json')).out) as { id: string };
  const [made, ...others] = (await noted('c@noted.example')) as { message: string }[];
  t.match(made, { action: 'account.created', status: 'success', ip: null });
  t.match(JSON.parse(made!.message), { userId: id, by: 'operator', time: /Z$/ });
  t.same(others, []);
  const [row] = await mysql.rows<{ subject: string }>('SELECT subject FROM audit_log WHERE user_id = ?', [id]);
  t.equal(row!.subject, subjectOf(app.needs.keyring, id));
});
