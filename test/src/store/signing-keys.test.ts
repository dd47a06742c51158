import { createConnection, type RowDataPacket } from 'mysql2/promise';
import t from 'tap';
import { migrate, readMigrations } from '../../../src/store/migrate.js';
import { emptyDatabase } from '../../support/stores.js';

t.test('keys of before there were states: the newest goes on, the others still verify; after a crash too', async (t) => {
  const url = await emptyDatabase(t);
  const db = await createConnection({ uri: url });
  t.teardown(() => db.end());
  await migrate(url);
  const version = readMigrations().find(({ name }) => name.endsWith('_signing_keys.sql'))!.version;
  // As it was before the migration.
  await db.query('DELETE FROM schema_migrations WHERE version >= ?', [version]);
  await db.query('DROP TABLE secret_changes');
  await db.query('ALTER TABLE signing_keys DROP COLUMN state, DROP COLUMN token_life_s, DROP COLUMN wanted_at, DROP COLUMN activated_at, DROP COLUMN retiring_at, DROP COLUMN retired_at, MODIFY COLUMN private_key VARBINARY(4096) NOT NULL');
  for (const [alg, day] of [['ES256', 1], ['RS256', 3], ['EdDSA', 2]] as const) await db.query(`INSERT INTO signing_keys (kid, slot, alg, public_key, private_key, created_at) VALUES (?, ?, ?, 'public', 'sealed', '2026-01-0${day}')`, [alg, alg, alg]);

  const states = async (): Promise<unknown[]> => {
    const [rows] = await db.query<RowDataPacket[]>('SELECT kid, state, slot, CAST(private_key AS CHAR) AS private, activated_at IS NOT NULL AS activated, retiring_at IS NOT NULL AS retiring, token_life_s AS life FROM signing_keys ORDER BY kid');
    return rows.map((row) => ({ ...row }));
  };
  const expected = [
    { kid: 'ES256', state: 'retiring', slot: null, private: null, activated: 0, retiring: 1, life: 86_400 },
    { kid: 'EdDSA', state: 'retiring', slot: null, private: null, activated: 0, retiring: 1, life: 86_400 },
    { kid: 'RS256', state: 'active', slot: 'active', private: 'sealed', activated: 1, retiring: 0, life: 86_400 },
  ];
  await migrate(url);
  t.same(await states(), expected);
  await db.query('DELETE FROM schema_migrations WHERE version >= ?', [version]);
  await migrate(url);
  t.same(await states(), expected);
});
