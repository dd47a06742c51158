import { v4 as uuid } from 'uuid';
import type { Deps } from '../../src/deps.js';
import type { Mysql } from '../../src/store/mysql.js';
import type { Redis } from '../../src/store/redis.js';
import { addRecoveryCodes, addTotp, type Account } from './accounts.js';
import { everyKey } from './keyspace.js';

/** Gives an account a row of each kind that its owner can see, with these names; the function returned shows the code of its authenticator app. */
export async function furnish({ mysql, keyring }: Pick<Deps, 'mysql' | 'keyring'>, { id }: Pick<Account, 'id'>, names: string[]): Promise<(at?: number) => string> {
  const [role, tenant] = [uuid(), uuid()];
  for (const name of names) await mysql.run('INSERT INTO profiles (id, user_id, provider, given_name, family_name) VALUES (?, ?, ?, ?, ?)', [uuid(), id, 'google', name, `x${name}`]);
  await mysql.run('INSERT INTO roles (id, name, description) VALUES (?, ?, ?)', [role, `role ${role}`, 'may "read", and write']);
  await mysql.run('INSERT INTO user_roles (user_id, role_id) VALUES (?, ?)', [id, role]);
  await mysql.run('INSERT INTO tenants (id, name, slug) VALUES (?, ?, ?)', [tenant, 'Ärzte, GmbH', tenant]);
  await mysql.run('INSERT INTO user_tenants (user_id, tenant_id) VALUES (?, ?)', [id, tenant]);
  return addTotp({ mysql, keyring }, id);
}

/** What the tables that nobody sees hold of an account. */
export async function furnishHidden({ mysql, keyring }: Pick<Deps, 'mysql' | 'keyring'>, { id, email }: Pick<Account, 'id' | 'email'>): Promise<void> {
  await addRecoveryCodes({ mysql, keyring }, id, ['11111-11111', '22222-22222']);
  await mysql.run("INSERT INTO mfa_tokens (token_hash, user_id, expires_at) VALUES (REPEAT('m', 32), ?, UTC_TIMESTAMP(3) + INTERVAL 1 DAY)", [id]);
  await mysql.run("INSERT INTO account_tokens (token_hash, user_id, purpose, address_hash, expires_at) VALUES (REPEAT('r', 32), ?, 'reset_password', REPEAT('a', 32), UTC_TIMESTAMP(3) + INTERVAL 1 DAY)", [id]);
  await mysql.run("INSERT INTO oauth_identities (issuer, subject, user_id, provider) VALUES ('https://id.example', ?, ?, 'google')", [id, id]);
  await mysql.run("INSERT INTO notification_outbox (id, user_id, template, channel, recipient, payload, next_attempt_at) VALUES (?, ?, 'account_deleted', 'EMAIL', ?, 'x', UTC_TIMESTAMP(3) + INTERVAL 1 DAY)", [uuid(), id, email]);
  await mysql.run("INSERT INTO login_places (user_id, country, latitude, longitude) VALUES (?, 'DE', 52.52, 13.4)", [id]);
  await mysql.run("INSERT INTO audit_log (user_id, subject, action, status, ip_address, detail) VALUES (?, ?, 'login', 'failure', '198.51.100.7', ?)", [id, 'x'.repeat(43), JSON.stringify({ note: `by ${email}` })]);
}

/** Every place in MySQL, whatever the table and type of column, that holds one of the words, in whatever case. */
export async function findInMysql(mysql: Mysql, words: (string | Buffer)[]): Promise<string[]> {
  const columns = await mysql.rows<{ name: string; col: string }>('SELECT table_name AS name, column_name AS col FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, column_name');
  // Bytes read as latin1 compare without regard to case, whatever they are; as binary strings they would not.
  const plain = (value: string): string => `CONVERT(CAST(${value} AS BINARY) USING latin1)`;
  const found: string[] = [];
  for (const { name, col } of columns) {
    for (const word of words) {
      const [row] = await mysql.rows<{ hits: number }>(`SELECT COUNT(*) AS hits FROM \`${name}\` WHERE LOCATE(${plain('?')}, ${plain(`\`${col}\``)}) > 0`, [word]);
      if (row!.hits > 0) found.push(`${name}.${col}`);
    }
  }
  return [...new Set(found)];
}

/** Every key of Redis that holds one of the words in its name or value. */
export async function findInRedis(redis: Redis, words: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const key of await everyKey(redis)) {
    const text = `${key} ${JSON.stringify(await valueOf(redis, key))}`.toLowerCase();
    if (words.some((word) => text.includes(word.toLowerCase()))) found.push(key);
  }
  return found.sort();
}

async function valueOf(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'string':
      return redis.get(key);
    case 'hash':
      return redis.hgetall(key);
    case 'zset':
      return redis.zrange(key, 0, -1, 'WITHSCORES');
    case 'set':
      return redis.smembers(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'stream':
      return redis.xrange(key, '-', '+');
    default:
      return null;
  }
}
