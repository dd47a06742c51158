import { spawn } from 'node:child_process';
import t from 'tap';
import { testEnv } from '../support/app.js';
import { runProgram, SERVICE } from '../support/cli.js';
import { createClient } from '../support/client.js';
import { startNodes } from '../support/nodes.js';
import { atMost } from '../support/patience.js';
import { startProxy } from '../support/proxy.js';
import { emptyDatabase, freshDatabase, ownRedis } from '../support/stores.js';

const messages = (out: string): { level: string; msg: string; err?: { message: string } }[] => out.trim().split('\n').map((line) => JSON.parse(line) as { level: string; msg: string });

t.test('npm start without its secrets ends with 1 and names each that is missing', async (t) => {
  const { code, out, err } = await runProgram(SERVICE, [], {});
  t.match({ code, out }, { code: 1, out: '' });
  for (const name of ['MYSQL_URL', 'REDIS_URL', 'SECRET_KEY']) t.match(err, `${name} is required`);
  t.notMatch(err, / at |node:/);
});

t.test('a database that was never migrated is refused, with the command that helps', async (t) => {
  const [mysqlUrl, redis] = await Promise.all([emptyDatabase(t), ownRedis(t)]);
  const { code, out } = await runProgram(SERVICE, [], { ...testEnv(mysqlUrl, redis.url), LOG_LEVEL: 'info' });
  t.equal(code, 1);
  t.match(messages(out).at(-1), { level: 'fatal', msg: /lacks migrations \(0001_accounts\.sql.*run "npm run cli -- migrate"/ });
});

t.test('without a store the service says which and ends with 1', async (t) => {
  const [mysqlUrl, redis] = await Promise.all([freshDatabase(t), ownRedis(t)]);
  const start = async (env: Record<string, string>) => {
    const { code, out } = await runProgram(SERVICE, [], { ...env, LOG_LEVEL: 'info' });
    t.equal(code, 1);
    return messages(out).at(-1);
  };
  t.match(await start(testEnv('mysql://127.0.0.1:1/none', redis.url)), { level: 'fatal', msg: 'MySQL cannot be used' });
  t.match(await start(testEnv(mysqlUrl, 'redis://127.0.0.1:1')), { level: 'fatal', msg: /Redis|cannot start/ });
});

t.test('a port that is taken is named', async (t) => {
  const { env, nodes } = await startNodes(t, 1);
  const { port } = new URL(nodes[0]!.base);
  const { code, out } = await runProgram(SERVICE, [], { ...env, PORT: port });
  t.equal(code, 1);
  t.match(out, `cannot listen on 127.0.0.1:${port}`);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} ends the service with 0 within 10 s, also when it comes twice`, async (t) => {
    const { nodes } = await startNodes(t, 1);
    const started = performance.now();
    const ended = nodes[0]!.stop(signal);
    void nodes[0]!.stop(signal);
    t.equal(await ended, 0);
    t.ok(performance.now() - started < atMost(10_000));
  });
}

t.test('a stop is in time and ends with 0 while both stores hang', { timeout: 90_000 }, async (t) => {
  const { env, redis, start } = await startNodes(t, 0);
  const proxy = await startProxy(t, env['MYSQL_URL']!);
  const node = await start({ MYSQL_URL: proxy.via(env['MYSQL_URL']!) });
  await proxy.become('hang');
  process.kill(redis.pid, 'SIGSTOP');
  const pending = node.client().login('nobody@example.com', 'wrong').catch(() => null);
  const started = performance.now();
  t.equal(await node.stop('SIGTERM'), 0);
  t.ok(performance.now() - started < atMost(10_000));
  await pending;
});

t.test('a reader of its log that goes away does not end the service', async (t) => {
  const { env } = await startNodes(t, 0);
  const child = spawn(process.execPath, [SERVICE], { env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => child.kill('SIGKILL'));
  const line = await new Promise<string>((resolve) => child.stdout.on('data', (chunk: Buffer) => chunk.includes('listening') && resolve(chunk.toString())));
  child.stdout.destroy();
  const client = createClient(`http://127.0.0.1:${(JSON.parse(line.trim().split('\n').at(-1)!) as { port: number }).port}`);
  for (let i = 0; i < 5; i += 1) {
    await client.login(`n${i}@example.com`, 'wrong');
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  t.equal((await client.request('GET', '/health/ready')).status, 200);
  t.equal(child.exitCode, null);
});
