import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import t, { type Test } from 'tap';
import { migrate, pendingMigrations, readMigrations } from '../../../src/store/migrate.js';
import { emptyDatabase } from '../../support/stores.js';

const names = readMigrations().map(({ name }) => name);

async function open(t: Test): Promise<{ url: string; db: Connection }> {
  const url = await emptyDatabase(t);
  const db = await createConnection({ uri: url });
  t.teardown(() => db.end());
  return { url, db };
}

/** Every column and index of the database, as lines. */
async function schema(db: Connection): Promise<string[]> {
  const [columns] = await db.query<RowDataPacket[]>("SELECT CONCAT_WS(' ', table_name, column_name, column_type, is_nullable, collation_name, column_default) AS line FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1");
  const [indexes] = await db.query<RowDataPacket[]>("SELECT CONCAT_WS(' ', table_name, index_name, seq_in_index, column_name, non_unique) AS line FROM information_schema.statistics WHERE table_schema = DATABASE() ORDER BY 1");
  return [...columns, ...indexes].map((row) => row['line'] as string);
}

t.test('an empty database gets every migration once, in order, and the ledger says which', async (t) => {
  const { url, db } = await open(t);
  t.same(await pendingMigrations(url), names);
  t.same(await schema(db), [], 'to ask changes nothing');
  t.same(await migrate(url), names);
  t.same(await pendingMigrations(url), []);
  t.same(await migrate(url), []);
  const [rows] = await db.query<RowDataPacket[]>('SELECT version, name, LENGTH(checksum) AS length FROM schema_migrations ORDER BY version');
  t.same(rows.map((row) => ({ ...row })), names.map((name, i) => ({ version: i + 1, name, length: 64 })));
});

t.test('every statement can run again: a file that a crash left half applied is finished', async (t) => {
  const { url, db } = await open(t);
  await migrate(url);
  const whole = await schema(db);
  // As if the process had died before each entry of the ledger.
  await db.query('DELETE FROM schema_migrations');
  t.same(await migrate(url), names);
  t.same(await schema(db), whole);

  await db.query('DELETE FROM schema_migrations WHERE version >= 2');
  for (const table of ['login_sources', 'signing_keys', 'event_outbox', 'notification_outbox', 'schedules']) await db.query(`DROP TABLE ${table}`);
  t.same(await migrate(url), names.slice(1));
  t.same(await schema(db), whole);
});

t.test('a migration that was edited after it had been applied is refused, and nothing is changed', async (t) => {
  const { url, db } = await open(t);
  await migrate(url);
  await db.query("UPDATE schema_migrations SET checksum = REPEAT('0', 64) WHERE version = 2");
  await db.query('DELETE FROM schema_migrations WHERE version = 6');
  const before = await schema(db);
  for (const ask of [migrate, pendingMigrations]) await t.rejects(ask(url), { message: `migrations/${names[1]!} was edited after it had been applied` });
  t.same(await schema(db), before);
  t.equal((await db.query<RowDataPacket[]>('SELECT 1 FROM schema_migrations'))[0].length, names.length - 1);
});

t.test('a database of a newer version is refused, even when it lacks one that this version has', async (t) => {
  const { url, db } = await open(t);
  await migrate(url);
  await db.query("INSERT INTO schema_migrations (version, name, checksum) VALUES (?, 'from the future', REPEAT('0', 64))", [names.length + 1]);
  for (const ask of [migrate, pendingMigrations]) await t.rejects(ask(url), /newer version of Portcullis/);
  await db.query('DELETE FROM schema_migrations WHERE version = 3');
  for (const ask of [migrate, pendingMigrations]) await t.rejects(ask(url), /newer version of Portcullis/);
});

t.test('of many that migrate at once one does the work, and nobody sees a half', async (t) => {
  const { url } = await open(t);
  const results = await Promise.all([...Array.from({ length: 4 }, () => migrate(url)), pendingMigrations(url)]);
  t.same(results.slice(0, 4).filter((applied) => applied.length > 0), [names]);
  t.ok([0, names.length].includes(results[4]!.length), 'all or nothing is missing');
});

t.test('a database does not wait for the migrations of another on the same server', async (t) => {
  const [one, other] = await Promise.all([open(t), open(t)]);
  await one.db.query("SELECT GET_LOCK(CONCAT('portcullis migrate ', LEFT(SHA2(DATABASE(), 256), 32)), 0)");
  t.same(await migrate(other.url), names);
  let isDone = false;
  const waiting = migrate(one.url).then(() => (isDone = true));
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.equal(isDone, false, 'this one waits');
  await one.db.query('DO RELEASE_ALL_LOCKS()');
  await waiting;
});

t.test('the service may start without the right to change the schema', async (t) => {
  const { url, db } = await open(t);
  await migrate(url);
  const before = await schema(db);
  const reader = new URL(url);
  reader.username = `reader_${Date.now() % 1e9}`;
  reader.password = 'word';
  try {
    await db.query(`CREATE USER '${reader.username}'@'%' IDENTIFIED BY 'word'`);
  } catch {
    t.pass('the user of MYSQL_URL may not create users', { skip: true });
    return;
  }
  t.teardown(async () => {
    const last = await createConnection({ uri: url.replace(/\/[^/]*$/, '/') });
    await last.query(`DROP USER '${reader.username}'@'%'`);
    await last.end();
  });
  await db.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${reader.pathname.slice(1)}.* TO '${reader.username}'@'%'`);
  t.same(await pendingMigrations(reader.href), []);
  await t.rejects(migrate(reader.href), /denied/);
  t.same(await schema(db), before);
});

t.test('the files are numbered without a gap', (t) => {
  t.same(readMigrations().map(({ version }) => version), names.map((_, i) => i + 1));
  t.end();
});
