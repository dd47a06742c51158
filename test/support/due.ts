import { setTimeout as sleep } from 'node:timers/promises';
import type { RetentionNeeds } from '../../src/account/retention.js';
import { loadConfig } from '../../src/config/load.js';
import { createKeyring } from '../../src/keyring.js';
import { createLog } from '../../src/log.js';
import { createMysql, type Mysql } from '../../src/store/mysql.js';
import { testEnv } from './app.js';
import { PATIENCE_MS } from './patience.js';
import { freshDatabase, type Teardown } from './stores.js';

/** What the nightly task needs, on a database of its own. */
export async function taskNeeds(t: Teardown, settings: Record<string, string> = {}): Promise<RetentionNeeds & { env: Record<string, string> }> {
  const env = { ...testEnv(await freshDatabase(t), 'redis://127.0.0.1:1'), ...settings };
  const config = loadConfig(env);
  const log = createLog('fatal');
  const mysql = createMysql({ url: config.mysqlUrl, connections: 10, log, statementMs: PATIENCE_MS });
  t.teardown(() => mysql.close());
  return { env, config, log, mysql, keyring: createKeyring(config.secretKey, null) };
}

const DIGITS = '(SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)';

/** A table of 1,000 rows, to insert many with one statement. */
export const THOUSAND = `${DIGITS} a, ${DIGITS} b, ${DIGITS} c`;

/** Inserts up to 1,000 accounts that were deleted 31 days ago, each with a profile, a role and a tenant. */
export async function seedDue(mysql: Mysql, count: number): Promise<void> {
  await mysql.run(`INSERT INTO users (id, email, deleted_at) SELECT UUID(), CONCAT(UUID(), '@example.com'), UTC_TIMESTAMP(3) - INTERVAL 31 DAY FROM ${THOUSAND} LIMIT ${count}`);
  await mysql.run("INSERT INTO profiles (id, user_id, provider) SELECT UUID(), id, 'google' FROM users");
  await mysql.run("INSERT INTO user_roles (user_id, role_id) SELECT id, 'some role' FROM users");
  await mysql.run("INSERT INTO user_tenants (user_id, tenant_id) SELECT id, 'some tenant' FROM users");
}

export const count = async (mysql: Mysql, table: string, where = '1 = 1'): Promise<number> => (await mysql.rows<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`))[0]!.n;

/** Waits until a check gives true; false when it does not within `ms`. */
export async function until(check: () => Promise<boolean>, ms = PATIENCE_MS): Promise<boolean> {
  for (const started = performance.now(); performance.now() - started < ms; ) {
    if (await check()) return true;
    await sleep(20);
  }
  return false;
}
