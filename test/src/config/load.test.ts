import t from 'tap';
import { ConfigError, loadConfig, settings } from '../../../src/config/load.js';
import { clusterAddress } from '../../../src/redis-url.js';

const SECRET = Buffer.alloc(32, 7).toString('base64');
const GIVEN = { MYSQL_URL: 'mysql://user:word@db.example:3306/portcullis', REDIS_URL: 'redis://cache.example:6379', SECRET_KEY: SECRET };

function problemsOf(env: Record<string, string>): string[] {
  try {
    loadConfig({ ...GIVEN, ...env });
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

t.test('three settings are required, and everything else has a default', (t) => {
  const config = loadConfig(GIVEN);
  t.match(config, { host: '127.0.0.1', port: 8080, opsPort: 9090, lockoutMinutes: [15, 30, 60], limitExport: { max: 5, windowMs: 3_600_000 }, limitLoginIp: null, retentionCron: false, tlsCertFile: null });
  t.same(problemsOf({ MYSQL_URL: '', REDIS_URL: '', SECRET_KEY: '' }).map((problem) => problem.split(' is required')[0]).sort(), ['MYSQL_URL', 'REDIS_URL', 'SECRET_KEY']);
  t.end();
});

t.test('every problem is named at once, one line each, and no value is shown', (t) => {
  const env = { SECRET_KEY: 'too short', MYSQL_URL: 'postgres://u:hidden@h/db', PORT: '70000', LOCKOUT_MINUTES: '15,x', TLS_CERT_FILE: '/cert.pem', ACCOUNT_RETENTION_DAYS: '29' };
  const problems = problemsOf(env);
  for (const name of ['SECRET_KEY must be', 'MYSQL_URL must be', 'PORT must be', 'LOCKOUT_MINUTES must be', 'TLS_CERT_FILE and TLS_KEY_FILE', 'ACCOUNT_RETENTION_DAYS must not']) t.ok(problems.some((problem) => problem.startsWith(name)), name);
  t.equal(problems.length, 6);
  const { message } = new ConfigError(problems);
  t.equal(message.split('\n').length, 7);
  t.notMatch(message, /hidden|too short|70000/);
  t.end();
});

t.test('Redis is one server or some nodes of a cluster, and a cluster has no number of a database', (t) => {
  for (const REDIS_URL of ['redis://h', 'rediss://u:p@h:1/2', 'redis+cluster://a:7000,b:7001', 'redis+cluster://a', 'rediss+cluster://user:p%40ss@a:1,[::1]:2/0']) t.same(problemsOf({ REDIS_URL }), [], REDIS_URL);
  for (const REDIS_URL of ['http://h', 'redis://', 'redis+cluster://', 'redis+cluster://a:1,', 'redis+cluster://a:1,b:x', 'redis+cluster://a/1', 'redis+cluster://u:%@a', 'redis+sentinel://a']) t.match(problemsOf({ REDIS_URL }), [/^REDIS_URL must be/], REDIS_URL);
  t.same(clusterAddress('rediss+cluster://user:p%40ss@a:1,[::1]'), { nodes: [{ host: 'a', port: 1 }, { host: '::1', port: 6379 }], tls: true, username: 'user', password: 'p@ss' });
  t.same(clusterAddress('redis+cluster://:word@a')?.password, 'word');
  t.end();
});

t.test('an empty variable counts as an unset one', (t) => {
  const empty = Object.fromEntries(settings().map(([, { env }]) => [env, '']));
  t.same(loadConfig({ ...empty, ...GIVEN }), loadConfig(GIVEN));
  t.end();
});

t.test('every setting has a name, a default that is in its own range, and a sentence about it', (t) => {
  const names = settings().map(([, { env }]) => env);
  t.equal(new Set(names).size, names.length);
  for (const [field, { env, doc, fallback, read }] of settings()) {
    t.match(env, /^[A-Z][A-Z0-9_]+$/, field);
    t.match(doc, /^[A-Z].{10,}\.$/, env);
    if (fallback !== null) t.doesNotThrow(() => read(fallback), env);
  }
  t.end();
});

t.test('settings that contradict each other are refused, at the edge too', (t) => {
  const refused: [Record<string, string>, RegExp][] = [
    [{ TLS_KEY_FILE: '/key.pem' }, /TLS_CERT_FILE and TLS_KEY_FILE go together/],
    [{ ACCOUNT_DELETION_GRACE_DAYS: '31' }, /ACCOUNT_RETENTION_DAYS must not be below ACCOUNT_DELETION_GRACE_DAYS/],
    [{ SESSION_IDLE_DAYS: '30.5' }, /SESSION_ABSOLUTE_DAYS must not be below SESSION_IDLE_DAYS/],
    [{ ARGON2_MEMORY_KIB: '262144', ARGON2_PASSES: '9' }, /ARGON2_MEMORY_KIB times ARGON2_PASSES/],
    [{ RETENTION_TZ: 'Mars/Olympus' }, /RETENTION_TZ must be a time zone/],
    [{ OPS_PORT: '8080' }, /OPS_PORT must not be PORT/],
    [{ OPS_PORT: '8080', OPS_HOST: '0.0.0.0' }, /OPS_PORT must not be PORT/],
  ];
  for (const [env, problem] of refused) {
    t.equal(problemsOf(env).length, 1, JSON.stringify(env));
    t.match(problemsOf(env)[0], problem);
  }
  const fine: Record<string, string>[] = [
    { TLS_CERT_FILE: '/cert.pem', TLS_KEY_FILE: '/key.pem' },
    { ACCOUNT_RETENTION_DAYS: '7', ACCOUNT_DELETION_GRACE_DAYS: '7' },
    { SESSION_IDLE_DAYS: '30' },
    { ARGON2_MEMORY_KIB: '262144', ARGON2_PASSES: '8' },
    { RETENTION_TZ: 'Europe/Berlin' },
    { OPS_PORT: '8080', OPS_HOST: '10.0.0.1' },
    { PORT: '0', OPS_PORT: '0' },
  ];
  for (const env of fine) t.same(problemsOf(env), [], JSON.stringify(env));
  t.end();
});
