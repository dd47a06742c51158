import t from 'tap';
import type { Connection } from 'mysql2/promise';
import { issueCode } from '../../src/account/otp.js';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import { pause, WRONG } from '../support/attempts.js';
import type { Account } from '../support/accounts.js';
import { figure, scaled } from '../support/figures.js';
import { ownMysql } from '../support/mysql-server.js';
import { startNodes } from '../support/nodes.js';
import { stored } from '../support/owner.js';
import { until } from '../support/patience.js';

const BACK_MS = 5000;
const UNAVAILABLE = { status: 503, setCookies: [], body: { code: 'UNAVAILABLE', retryAfter: 1 } };
/** What may be answered while MySQL comes and goes; the accounts that are guessed at get locked. */
const EXPECTED = { login: [200, 503], profile: [200, 503], guess: [401, 429, 503] };

const own = await ownMysql(t);
const skip = own ? false : 'no MySQL or MariaDB program on this machine: name one in MYSQLD';
const server = own!;
const service = await startNodes(t, own ? 1 : 0, { ...(own ? { MYSQL_URL: own.url } : {}), HASH_QUEUE_MS: '10000', LOCKOUT_MINUTES: '0.01' });
const node = service.nodes[0]!;
const { mysql } = service.needs;

/** Several kinds of users at the service until told to stop; gives what they were answered, and every session that a reply promised. */
function traffic(owners: Account[], victim: Account) {
  let over = false;
  const seen = new Map<string, number>();
  const promised: string[] = [];
  const note = (kind: keyof typeof EXPECTED, status: number): void => void seen.set(`${kind} ${status}`, (seen.get(`${kind} ${status}`) ?? 0) + 1);
  const repeat = async (work: (i: number) => Promise<void>): Promise<void> => {
    for (let i = 0; !over; i += 1) {
      await work(i);
      await pause(10);
    }
  };
  const users = [
    ...owners.map(({ email, password }) =>
      repeat(async () => {
        const { status, body } = await node.client().login(email, password);
        note('login', status);
        if (status !== 200) return;
        promised.push(body['refreshToken'] as string);
        note('profile', (await node.client().profile(body['accessToken'] as string)).status);
      }),
    ),
    repeat(async () => note('guess', (await node.client({ ip: '203.0.113.1' }).login(victim.email, WRONG)).status)),
  ];
  return {
    end: async () => {
      over = true;
      await Promise.all(users);
      const isExpected = (one: string): boolean => EXPECTED[one.split(' ')[0] as keyof typeof EXPECTED].includes(Number(one.split(' ')[1]));
      const counted = (status: number): number => [...seen].reduce((sum, [one, n]) => sum + (one.endsWith(` ${status}`) ? n : 0), 0);
      return { promised, counted, others: [...seen].filter(([one]) => !isExpected(one)) };
    },
  };
}

const back = async ({ email, password }: Account): Promise<number> => {
  const ms = await until(async () => (await node.client().login(email, password)).status === 200, BACK_MS);
  await until(async () => (await node.client().request('GET', '/health/ready')).status === 200, BACK_MS);
  return ms;
};
const crew = (): Promise<Account[]> => Promise.all(Array.from({ length: 5 }, () => service.account()));

t.test('MySQL killed with -9 under load costs 503 at most, and nothing that was answered is lost', { skip, timeout: 90_000 }, async (t) => {
  const kills = scaled(1, 5);
  let [slowest, ok, down, lost] = [0, 0, 0, 0];
  const others: unknown[] = [];
  for (let i = 0; i < kills; i += 1) {
    const [first, ...owners] = (await crew()) as [Account, ...Account[]];
    const load = traffic(owners, first);
    await pause(500);
    await server.kill();
    await pause(300);
    await server.restart();
    slowest = Math.max(slowest, await back(owners[0]!));
    await pause(100);
    const seen = await load.end();
    others.push(...seen.others);
    [ok, down] = [ok + seen.counted(200), down + seen.counted(503)];
    for (const token of seen.promised) if ((await node.client().refresh(token)).status !== 200) lost += 1;
  }
  t.same(others, [], 'never 401 to the right password, never 500');
  t.ok(ok > 0 && down > 0, `${ok} served, ${down} told 503`);
  t.equal(lost, 0, 'each session that a reply promised is there');
  figure(t, 'T64', { did: `MySQL killed with -9 ${kills} times under load and started again`, figure: `${ok} × 200, ${down} × 503, ${others.length} kinds of other replies, ${lost} answered sessions lost; back within ${slowest.toFixed(0)} ms`, ok: others.length === 0 && lost === 0 && slowest <= BACK_MS });
});

t.test('with MySQL read-only, what writes is 503 and what reads is served', { skip, timeout: 60_000 }, async (t) => {
  const [owner, victim, fresh] = (await crew()) as [Account, Account, Account];
  const client = node.client();
  const { accessToken, refreshToken } = (await client.login(owner.email, owner.password)).body as Record<string, string>;
  const bearer = { authorization: `Bearer ${accessToken!}` };
  await server.admin('SET GLOBAL read_only = ON');
  try {
    for (let round = 0; round < 2; round += 1) {
      t.match(await node.client().login(owner.email, owner.password), UNAVAILABLE, 'login');
      t.match(await client.refresh(refreshToken), UNAVAILABLE, 'refresh');
      t.match(await client.request('POST', '/api/auth/logout', { headers: bearer }), UNAVAILABLE, 'logout');
      t.match(await node.client().request('POST', '/api/auth/account/delete-request', { headers: bearer }), UNAVAILABLE, 'request of a deletion');
      t.match(await client.profile(accessToken), { status: 200, body: { email: owner.email } }, 'profile');
    }
  } finally {
    await server.admin('SET GLOBAL read_only = OFF');
  }
  const first = await back(fresh);
  t.match(await client.refresh(refreshToken), { status: 200 }, 'no token was burnt');

  const load = traffic([owner, fresh], victim);
  for (let i = 0; i < 3; i += 1) {
    await pause(150);
    await server.admin('SET GLOBAL read_only = ON');
    await pause(150);
    await server.admin('SET GLOBAL read_only = OFF');
  }
  const again = await back(fresh);
  const { others, counted } = await load.end();
  t.same(others, [], 'never 401 to the right password, never 500');
  t.ok(counted(503) > 0);
  const slowest = Math.max(first, again);
  figure(t, 'T64', { did: 'MySQL read-only: login, refresh, logout and deletion one by one, then on and off under load', figure: `${8 + counted(503)} × 503, profile served, ${others.length} kinds of other replies; back within ${slowest.toFixed(0)} ms`, ok: others.length === 0 && slowest <= BACK_MS });
});

t.test('with every connection of MySQL taken by others, requests are 503, and served once one is free', { skip, timeout: 60_000 }, async (t) => {
  const [owner, victim, other] = (await crew()) as [Account, Account, Account];
  const [{ most }] = (await server.admin('SELECT @@max_connections AS most')) as [{ most: number }];
  const { accessToken } = (await node.client().login(owner.email, owner.password)).body as Record<string, string>;
  const watch = await server.connect();
  const ours = async (): Promise<number[]> => ((await watch.query("SELECT id FROM information_schema.processlist WHERE user = 'service'"))[0] as { id: number }[]).map(({ id }) => id);
  await watch.query('SET GLOBAL max_connections = 10');
  const hogs: Connection[] = [];
  try {
    // The node keeps its connections: they are ended, and before it can have new ones others have them all.
    const isTaken = (): Promise<boolean> => server.connect().then((hog) => hogs.push(hog) === 0, () => true);
    await until(async () => {
      for (const id of await ours()) await watch.query(`KILL ${id}`).catch(() => undefined);
      while (!(await isTaken()));
      return (await ours()).length === 0;
    }, 10_000);
    for (let round = 0; round < 3; round += 1) {
      t.match(await node.client().login(owner.email, owner.password), UNAVAILABLE, 'login');
      t.match(await node.client().login('nobody@example.com', WRONG), UNAVAILABLE, 'login of nobody');
      t.match(await node.client().profile(accessToken), UNAVAILABLE, 'profile');
      t.match(await node.client().request('GET', '/health/ready'), { status: 503 }, 'not ready');
    }
    const load = traffic([owner, other], victim);
    await pause(scaled(300, 3000));
    const { others, counted } = await load.end();
    t.same(others, [], 'never 401, never 500');
    t.equal(counted(200), 0);
    for (const hog of hogs) hog.destroy();
    await watch.query(`SET GLOBAL max_connections = ${most}`);
    const ms = await back(other);
    figure(t, 'T64', { did: `max_connections used up by others: ${9 + counted(503)} requests`, figure: `all 503; back after ${ms.toFixed(0)} ms`, ok: others.length === 0 && ms <= BACK_MS });
  } finally {
    for (const hog of hogs) hog.destroy();
    await watch.query(`SET GLOBAL max_connections = ${most}`);
  }
});

t.test('deletions that MySQL undoes because of a deadlock are done again, once', { skip, timeout: 60_000 }, async (t) => {
  const rounds = scaled(5, 50);
  const redis = createRedis(service.redis.url, createLog('silent'));
  await redis.connect();
  t.teardown(() => redis.disconnect());
  const issuing = { ...service.needs, log: createLog('silent'), scripts: loadScripts(redis) };
  const rival = await server.connect();
  await rival.query('CREATE TABLE service.weight (n INT) ENGINE = InnoDB');
  const deadlocks = async (): Promise<number> => Number((await server.admin("SELECT COUNT AS n FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'"))[0]!['n']);
  await server.admin("SET GLOBAL innodb_monitor_enable = 'lock_deadlocks'");
  const before = await deadlocks();
  let [succeeded, once] = [0, 0];
  for (let i = 0; i < rounds; i += 1) {
    const owner = await service.account();
    const { accessToken } = (await node.client().login(owner.email, owner.password)).body as Record<string, string>;
    const otp = await issueCode(issuing, owner, 'delete');
    await rival.query('START TRANSACTION');
    // The lighter of two transactions is undone: this one is not.
    await rival.query(`INSERT INTO service.weight VALUES ${Array.from({ length: 100 }, () => '(1)').join(', ')}`);
    await rival.query('SELECT id FROM service.sessions WHERE user_id = ? FOR UPDATE', [owner.id]);
    const answer = node.client().request('DELETE', '/api/auth/account', { headers: { authorization: `Bearer ${accessToken!}` }, body: { otp } });
    await until(async () => (await server.admin("SELECT id FROM information_schema.processlist WHERE user = 'service' AND info LIKE 'UPDATE sessions SET%'")).length > 0, 5000);
    await rival.query('SELECT id FROM service.users WHERE id = ? FOR UPDATE', [owner.id]);
    await rival.query('ROLLBACK');
    if ((await answer).status === 200) succeeded += 1;
    const now = await stored(mysql, owner.id);
    if (now.events.length === 1 && now.liveSessions === 0 && now.deletedAt !== null && now.audit.filter((entry) => entry === 'account.deleted success').length === 1) once += 1;
  }
  const met = (await deadlocks()) - before;
  t.ok(met >= rounds, `${met} deadlocks`);
  t.equal(succeeded, rounds);
  figure(t, 'T64', { did: `${rounds} deletions, each crossed by a transaction that locks the same rows the other way round`, figure: `${met} deadlocks, ${succeeded} × 200, ${rounds - once} without exactly one effect`, ok: met >= rounds && succeeded === rounds && once === rounds });
});

t.test('the node has not ended, nor been told of an error that nobody caught', { skip }, async (t) => {
  t.equal((await node.client().request('GET', '/health/live')).status, 200);
  t.same(node.output().split('\n').filter((line) => /uncaught|unhandled|"level":"fatal"/i.test(line)), []);
  t.equal(await node.stop('SIGTERM'), 0);
});
