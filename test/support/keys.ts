import { randomBytes } from 'node:crypto';
import { loadConfig } from '../../src/config/load.js';
import type { Config } from '../../src/config/settings.js';
import { createKeyring, type Keyring } from '../../src/keyring.js';
import { createLog, type Log } from '../../src/log.js';
import { createMysql, type Mysql } from '../../src/store/mysql.js';
import { listKeys, type KeyState } from '../../src/store/signing-keys.js';
import { testEnv } from './app.js';
import { freshDatabase, type Teardown } from './stores.js';

/** What the signing keys of one node need; several may share a database. */
export interface KeyNode {
  mysql: Mysql;
  keyring: Keyring;
  config: Config;
  log: Log;
}

/** A node on a database of its own, or on that of another. */
export async function keyNode(t: Teardown, settings: Record<string, string> = {}, shared?: KeyNode): Promise<KeyNode> {
  const url = settings['MYSQL_URL'] ?? shared?.config.mysqlUrl ?? (await freshDatabase(t));
  const secret = shared?.config.secretKey ?? randomBytes(32);
  const config = loadConfig({ ...testEnv(url, 'redis://127.0.0.1'), SECRET_KEY: secret.toString('base64'), ...settings });
  const log = createLog('silent');
  const mysql = createMysql({ url: config.mysqlUrl, connections: 4, log });
  t.teardown(() => mysql.close());
  return { mysql, config, log, keyring: createKeyring(config.secretKey, config.secretKeyPrevious) };
}

/** The kids in a state, the oldest first. */
export const kidsIn = async ({ mysql }: Pick<KeyNode, 'mysql'>, state: KeyState): Promise<string[]> => (await listKeys(mysql)).filter((key) => key.state === state).map((key) => key.kid);

/** Makes everything about the keys happen so much earlier, in s. */
export async function age({ mysql }: Pick<KeyNode, 'mysql'>, seconds: number): Promise<void> {
  const back = ['created_at', 'activated_at', 'retiring_at', 'retired_at'].map((column) => `${column} = ${column} - INTERVAL ? SECOND`).join(', ');
  await mysql.run(`UPDATE signing_keys SET ${back}`, [seconds, seconds, seconds, seconds]);
}
