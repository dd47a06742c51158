import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadConfig } from '../src/config/load.js';
import { createLog } from '../src/log.js';
import { createHashing } from '../src/pools/hashing.js';
import { createMysql, type Mysql } from '../src/store/mysql.js';
import { ownDatabase } from './database.js';
import { ascending, median, quantile } from './numbers.js';
import { startPortcullis } from './portcullis.js';

const USAGE = `npm run bench -- retention [options]

What the nightly purge does to logins on the node that runs it: rounds without and with the purge, in turn.

  --accounts n   accounts in the database (1000000)
  --due n        of these, how many are due (a tenth)
  --rate n       logins per second (20)
  --rounds n     pairs of rounds (5)
  --seconds n    length of a round (20)
`;
const LOGS = fileURLToPath(new URL('../../.local/bench/retention', import.meta.url));
const PASSWORD = 'a password of the bench';
const LOGINS = 500;
/** Rows that one statement seeds. */
const CHUNK = 10_000;

interface Plan {
  accounts: number;
  due: number;
  rate: number;
  rounds: number;
  seconds: number;
}

interface Round {
  p50: number;
  p99: number;
  errors: number;
  purged: number;
  /** Resident memory of the service after its start, at its highest and at the end, in MiB. */
  memory: [number, number, number];
}

function readPlan(): Plan | null {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ options: { accounts: text, due: text, rate: text, rounds: text, seconds: text, help: { type: 'boolean' } } });
  if (values.help) return null;
  const accounts = Number(values.accounts ?? 1_000_000);
  return { accounts, due: Number(values.due ?? accounts / 10), rate: Number(values.rate ?? 20), rounds: Number(values.rounds ?? 5), seconds: Number(values.seconds ?? 20) };
}

const DIGITS = '(SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)';

/** Accounts with a profile, a role, a tenant, a session and two audit entries each; the first `due` were deleted 40 days ago. */
async function seed(mysql: Mysql, { accounts, due }: Plan, passwordHash: string): Promise<void> {
  const numbers = `(SELECT ? + a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n FROM ${DIGITS} a, ${DIGITS} b, ${DIGITS} c, ${DIGITS} d) numbers WHERE n < ?`;
  const id = "CONCAT(LPAD(HEX(n), 8, '0'), '-0000-7000-8000-', LPAD(HEX(n), 12, '0'))";
  const rows = [
    `INSERT INTO users (id, email, password_hash, email_verified_at, deleted_at) SELECT ${id}, CONCAT('user', n, '@example.com'), NULL, UTC_TIMESTAMP(3), IF(n < ${due}, UTC_TIMESTAMP(3) - INTERVAL 40 DAY, NULL) FROM ${numbers}`,
    `INSERT INTO profiles (id, user_id, provider, given_name) SELECT UUID(), ${id}, 'google', 'Given' FROM ${numbers}`,
    `INSERT INTO user_roles (user_id, role_id) SELECT ${id}, 'role' FROM ${numbers}`,
    `INSERT INTO user_tenants (user_id, tenant_id) SELECT ${id}, 'tenant' FROM ${numbers}`,
    `INSERT INTO sessions (id, user_id, secret_hash, amr, device, ip_address, expires_at, absolute_expires_at) SELECT UUID(), ${id}, REPEAT('s', 32), 'pwd', 'browser', '192.0.2.1', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM ${numbers}`,
    ...[1, 2].map(() => `INSERT INTO audit_log (user_id, subject, action, status, ip_address) SELECT ${id}, REPEAT('x', 43), 'login', 'success', '192.0.2.1' FROM ${numbers}`),
  ];
  for (let from = 0; from < accounts; from += CHUNK) for (const sql of rows) await mysql.run(sql, [from, accounts]);
  // The last accounts are those that log in.
  await mysql.run('UPDATE users SET password_hash = ? WHERE deleted_at IS NULL ORDER BY id DESC LIMIT ?', [passwordHash, LOGINS]);
}

const memoryOf = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;

/** Logs in at a fixed rate, whatever the replies take; times count from the moment that each was due. */
async function load(base: string, { accounts, rate, seconds }: Plan, warm: boolean): Promise<{ times: number[]; errors: number }> {
  const times: number[] = [];
  let errors = 0;
  const begun = performance.now();
  const logins = Array.from({ length: rate * (warm ? 3 : seconds) }, async (_, n) => {
    const due = begun + (n * 1000) / rate;
    await sleep(Math.max(0, due - performance.now()));
    const response = await fetch(`${base}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: `user${accounts - 1 - (n % LOGINS)}@example.com`, password: PASSWORD }),
    });
    await response.text();
    times.push(performance.now() - due);
    if (response.status !== 200) errors += 1;
  });
  await Promise.all(logins);
  return { times: ascending(times), errors };
}

async function round(mysql: Mysql, env: Record<string, string>, plan: Plan): Promise<Round> {
  const left = async (): Promise<number> => (await mysql.rows<{ n: number }>('SELECT COUNT(*) AS n FROM users WHERE deleted_at IS NOT NULL'))[0]!.n;
  const service = await startPortcullis({ PATH: process.env['PATH'], ...env }, LOGS, false);
  await load(service.base, plan, true);
  const [before, first] = [await left(), memoryOf(service.pid)];
  let peak = first;
  const watch = setInterval(() => (peak = Math.max(peak, memoryOf(service.pid))), 200);
  const { times, errors } = await load(service.base, plan, false);
  clearInterval(watch);
  const last = memoryOf(service.pid);
  const purged = before - (await left());
  await service.stop();
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), errors, purged, memory: [first, Math.max(peak, last), last] };
}

function show(name: string, { p50, p99, errors, purged, memory }: Round): void {
  const [first, peak, last] = memory.map((mib) => mib.toFixed(0));
  process.stdout.write(`${name.padEnd(8)} p50 ${p50.toFixed(1)} ms   p99 ${p99.toFixed(1)} ms   errors ${errors}   purged ${purged}   memory ${first!} → ${last!} MiB, at most ${peak!}\n`);
}

async function run(plan: Plan): Promise<void> {
  const database = ownDatabase(process.env['MYSQL_URL']!);
  try {
    await database.create();
    await measure(plan, database.url);
  } finally {
    await database.drop();
  }
}

async function measure(plan: Plan, mysqlUrl: string): Promise<void> {
  const env = { MYSQL_URL: mysqlUrl, REDIS_URL: process.env['REDIS_URL']!, SECRET_KEY: randomBytes(32).toString('base64'), PORT: '0', OPS_PORT: '0', NOTIFY_FILE: '/dev/null', LIMIT_REFRESH_IP: '0' };
  const config = loadConfig(env);
  const log = createLog('fatal');
  const mysql = createMysql({ url: mysqlUrl, connections: 1, log, statementMs: 600_000 });
  const hashing = createHashing(config, log, { waited: () => undefined, ran: () => undefined, shed: () => undefined });
  const hash = await hashing.hash(PASSWORD, { network: 'bench' });
  await hashing.close();
  process.stdout.write(`seeding ${plan.accounts} accounts, ${plan.due} due …\n`);
  await seed(mysql, plan, hash);
  const pairs: { idle: Round; purge: Round }[] = [];
  for (let n = 0; n < plan.rounds; n += 1) {
    const idle = await round(mysql, env, plan);
    show('idle', idle);
    const purge = await round(mysql, { ...env, ENABLE_RETENTION_CRON: '1' }, plan);
    show('purging', purge);
    if (purge.purged === 0) throw new Error('nothing was left to purge: more --due or fewer --rounds are needed');
    pairs.push({ idle, purge });
  }
  await mysql.close();
  const of = (pick: (pair: { idle: Round; purge: Round }) => number): string => median(pairs.map(pick)).toFixed(2);
  process.stdout.write(`medians: p50 ratio ${of(({ idle, purge }) => purge.p50 / idle.p50)}   p99 ratio ${of(({ idle, purge }) => purge.p99 / idle.p99)} (target 1.5)   ${of(({ purge }) => purge.purged / plan.seconds)} accounts/s   memory grew by ${of(({ purge }) => purge.memory[2] - purge.memory[0])} MiB, without the purge by ${of(({ idle }) => idle.memory[2] - idle.memory[0])} MiB\n`);
}

const plan = readPlan();
if (plan) await run(plan);
else process.stdout.write(USAGE);
