import t from 'tap';
import { testEnv } from '../../support/app.js';
import { cli } from '../../support/cli.js';
import { startProxy } from '../../support/proxy.js';
import { emptyDatabase, freshDatabase, ownRedis } from '../../support/stores.js';

const NOWHERE = testEnv('mysql://user:secret-of-mysql@127.0.0.1:1/portcullis', 'redis://127.0.0.1:1');
const TRACE = /\n {4}at |node:internal/;
const EVERY = [['migrate'], ['user', 'create'], ['user', 'import'], ['user', 'disable'], ['user', 'enable'], ['user', 'unlock'], ['retention', 'run'], ['events', 'replay'], ['docs']];

t.test('every command explains itself without settings and without stores', async (t) => {
  const results = await Promise.all([[], ['user'], ...EVERY].map(async (command) => ({ command, ...(await cli({})(...command, '--help')) })));
  for (const { command, code, out, err } of results) {
    t.match({ code, err }, { code: 0, err: '' }, command.join(' '));
    t.match(out, new RegExp(`^Usage: portcullis ${command.join(' ')}`.trim()));
    t.match(out, '--json', 'the global option is shown');
  }
  const overview = results[0]!.out;
  for (const [first] of EVERY) t.equal(overview.includes(`\n  ${first!} `), first !== 'docs', `${first!} in the overview`);
});

t.test('wrong usage ends with 2 and says what is wrong, before any store is asked', async (t) => {
  const wrong: [string[], RegExp][] = [
    [[], /^Usage: portcullis/],
    [['nonsense'], /unknown command 'nonsense'/],
    [['user', 'unlok'], /unknown command 'unlok'[^]*unlock/],
    [['user', 'disable'], /required option '--email <address>' not specified/],
    [['user', 'disable', '--email', 'x@y', '--now'], /unknown option '--now'/],
    [['user', 'create', '--email', 'ann@example.com'], /required option '--password-stdin' not specified/],
    [['user', 'create', '--email', 'ann', '--password-stdin'], /'ann' is invalid. It is no e-mail address/],
    [['user', 'create', '--email', 'ann@example.com', '--password-stdin', '--phone', '12'], /'12' is invalid. a phone number has/],
    [['user', 'create', '--email', 'ann@example.com', '--password-stdin', '--phone-verified'], /'--phone-verified' needs '--phone'/],
    [['user', 'import'], /missing required argument 'file.jsonl'/],
    [['retention', 'run', '--share', '2'], /a number from 0.01 to 1/],
    [['events', 'replay'], /required option '--since <when>'/],
    [['events', 'replay', '--since', 'yesterday'], /a time such as 2026-01-31T08:00:00Z or a duration/],
  ];
  const results = await Promise.all(wrong.map(([args]) => cli(NOWHERE)(...args)));
  results.forEach(({ code, out, err }, i) => {
    const [args, message] = wrong[i]!;
    t.match({ code, out }, { code: 2, out: '' }, args.join(' ') || 'nothing');
    t.match(err, message);
    t.notMatch(err, TRACE);
  });
});

t.test('settings that are not usable are all named, with exit code 1', async (t) => {
  for (const args of [['migrate'], ['user', 'enable', '--email', 'ann@example.com']]) {
    const { code, out, err } = await cli({ ...NOWHERE, SECRET_KEY: '', REDIS_URL: 'http://x', PORT: 'x' })(...args);
    t.match({ code, out }, { code: 1, out: '' });
    for (const name of ['SECRET_KEY is required', 'REDIS_URL must be', 'PORT must be']) t.match(err, name);
    t.notMatch(err, TRACE);
  }
});

t.test('a store that is away, refuses or was never migrated is named in a sentence, with exit code 1', { timeout: 60_000 }, async (t) => {
  const [mysqlUrl, emptyUrl, redis] = await Promise.all([freshDatabase(t), emptyDatabase(t), ownRedis(t, ['--requirepass', 'word'])]);
  const proxy = await startProxy(t, mysqlUrl);
  await proxy.become('hang');
  const redisUrl = redis.url.replace('//', '//:word@');
  const with_ = (change: Record<string, string>): Record<string, string> => ({ ...NOWHERE, MYSQL_URL: mysqlUrl, REDIS_URL: redisUrl, ...change });
  const wrongPassword = new URL(mysqlUrl);
  wrongPassword.password = 'not-this-one';
  const noDatabase = new URL(mysqlUrl);
  noDatabase.pathname = '/there_is_no_such_database';
  const unlock = ['user', 'unlock', '--email', 'ann@example.com'];
  const enable = ['user', 'enable', '--email', 'ann@example.com'];
  const cases: [string[], Record<string, string>, RegExp][] = [
    [enable, NOWHERE, /^MySQL cannot be used: connect ECONNREFUSED 127.0.0.1:1\n$/],
    [['migrate'], NOWHERE, /^the migrations stopped: connect ECONNREFUSED 127.0.0.1:1\n$/],
    [['retention', 'run'], NOWHERE, /^MySQL cannot be used/],
    [['events', 'replay', '--since', '1h'], with_({ REDIS_URL: 'redis://127.0.0.1:1' }), /^Redis cannot be used: connect ECONNREFUSED 127.0.0.1:1\n$/],
    [enable, with_({ MYSQL_URL: proxy.via(mysqlUrl) }), /^MySQL cannot be used: .*ETIMEDOUT/],
    [enable, with_({ MYSQL_URL: wrongPassword.href }), /^MySQL refuses: Access denied/],
    [['migrate'], with_({ MYSQL_URL: wrongPassword.href }), /^the migrations stopped: Access denied/],
    [enable, with_({ MYSQL_URL: noDatabase.href }), /^MySQL refuses: /],
    [enable, with_({ MYSQL_URL: emptyUrl }), /^the database is not up to date \(.*\): run "npm run cli -- migrate" first\n$/],
    [unlock, with_({ REDIS_URL: 'redis://127.0.0.1:1' }), /^Redis cannot be used: connect ECONNREFUSED/],
    [unlock, with_({ REDIS_URL: redis.url.replace('//', '//:wrong@') }), /^Redis cannot be used: WRONGPASS/],
    [unlock, with_({ REDIS_URL: redis.url }), /^Redis cannot be used: NOAUTH/],
    [unlock, with_({}), /^no account has the address ann@example.com\n$/],
  ];
  const results = await Promise.all(cases.map(([args, env]) => cli(env)(...args)));
  for (const [i, { code, out, err }] of results.entries()) {
    const [args, , message] = cases[i]!;
    t.match({ code, out }, { code: 1, out: '' }, args.join(' '));
    t.match(err, message);
    t.notMatch(err, TRACE);
    t.notMatch(err, /secret-of-mysql|not-this-one/, 'no password is shown');
  }
});
