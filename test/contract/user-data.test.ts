import t from 'tap';
import { OTHER_TABLES, REDIS_KEYS, USER_TABLES, type UserTable } from '../../src/account/user-data.js';
import { createLog } from '../../src/log.js';
import { createMysql, type Mysql } from '../../src/store/mysql.js';
import { KEYS } from '../../src/store/redis.js';
import { freshDatabase, type Teardown } from '../support/stores.js';

const open = async (t: Teardown): Promise<Mysql> => {
  const mysql = createMysql({ url: await freshDatabase(t), connections: 2, log: createLog('fatal') });
  t.teardown(() => mysql.close());
  return mysql;
};

async function schema(mysql: Mysql): Promise<Map<string, string[]>> {
  const rows = await mysql.rows<{ name: string; col: string }>('SELECT table_name AS name, column_name AS col FROM information_schema.columns WHERE table_schema = DATABASE()');
  const tables = new Map<string, string[]>();
  for (const { name, col } of rows) tables.set(name, [...(tables.get(name) ?? []), col]);
  return tables;
}

/** Everything in which the schema and the map of personal data disagree. */
function gaps(tables: Map<string, string[]>): string[] {
  const declared = [...Object.keys(USER_TABLES), ...Object.keys(OTHER_TABLES)];
  const found = [...declared.filter((name) => !tables.has(name)).map((name) => `${name} does not exist`)];
  for (const [name, columns] of tables) {
    const table = USER_TABLES[name];
    if (table) found.push(...gapsOf(name, table, columns));
    else if (!(name in OTHER_TABLES)) found.push(`${name} is neither personal nor other data`);
    else found.push(...columns.filter((column) => /user|email|phone|address/.test(column)).map((column) => `${name}.${column} looks personal`));
  }
  return found;
}

function gapsOf(name: string, { owner, purge, sheet, withheld = {} }: UserTable, columns: string[]): string[] {
  const missing = (listed: string[], from: string): string[] => [
    ...columns.filter((column) => !listed.includes(column)).map((column) => `${name}.${column} is missing from the ${from}`),
    ...listed.filter((column) => !columns.includes(column)).map((column) => `${name}.${column} of the ${from} does not exist`),
  ];
  const found = columns.includes(owner) ? [] : [`${name}.${owner} does not exist`];
  // Rows that go take every column along; of those that stay each column must be spoken for.
  if (purge.how === 'blank') found.push(...missing([...Object.keys(purge.set), ...Object.keys(purge.keeps)], 'purge'));
  if (typeof sheet === 'string') return found;
  const shown = sheet.fields.filter((field) => field.column.startsWith('t.')).map((field) => field.column.slice(2));
  return [...found, ...missing([...shown, ...Object.keys(withheld)], 'export')];
}

t.test('every table and column is in the purge and export maps, or declared as nobody’s', async (t) => {
  t.same(gaps(await schema(await open(t))), []);
});

t.test('a new table, a new column and a column that went are each found', async (t) => {
  const mysql = await open(t);
  await mysql.run('CREATE TABLE favourites (id INT PRIMARY KEY, user_id CHAR(36) NOT NULL)');
  await mysql.run('ALTER TABLE profiles ADD COLUMN birthday DATE NULL');
  await mysql.run('ALTER TABLE sessions ADD COLUMN city VARCHAR(64) NULL');
  await mysql.run('ALTER TABLE roles ADD COLUMN owner_email VARCHAR(64) NULL');
  await mysql.run('ALTER TABLE audit_log DROP COLUMN detail');
  t.same(gaps(await schema(mysql)).sort(), [
    'audit_log.detail of the export does not exist',
    'audit_log.detail of the purge does not exist',
    'favourites is neither personal nor other data',
    'profiles.birthday is missing from the export',
    'roles.owner_email looks personal',
    'sessions.city is missing from the export',
    'sessions.city is missing from the purge',
  ]);
});

t.test('every key of Redis is in the purge and export map', async (t) => {
  const missing = (keys: string[]): string[] => keys.filter((key) => !(key in REDIS_KEYS));
  t.same(missing(Object.keys(KEYS)), []);
  t.same(missing([...Object.keys(KEYS), 'favourites']), ['favourites']);
  t.same(Object.keys(REDIS_KEYS).filter((key) => !(key in KEYS)), []);
});
