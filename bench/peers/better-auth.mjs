/**
 * better-auth as its documentation sets it up for node:http and MySQL, with the argon2 engine and cost of Portcullis.
 * Started by bench/peers.ts, which sends what it needs in PEER_SETUP and hears `{port}` once it listens.
 */
import { createServer } from 'node:http';
import { hash, verify } from '@node-rs/argon2';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { toNodeHandler } from 'better-auth/node';
import { createPool } from 'mysql2/promise';

const { mysqlUrl, connections, secret, argon2, cookieCache, joins, accounts, passwordHash } = JSON.parse(process.env.PEER_SETUP);
/** Rows per insert. */
const BATCH = 1_000;

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address();

const pool = createPool({ uri: mysqlUrl, timezone: 'Z', connectionLimit: connections, maxIdle: connections });
const options = {
  baseURL: `http://127.0.0.1:${port}`,
  secret,
  database: pool,
  emailAndPassword: {
    enabled: true,
    password: {
      hash: (password) => hash(password, { memoryCost: argon2.memoryKib, timeCost: argon2.passes, parallelism: 1 }),
      verify: ({ hash: stored, password }) => verify(stored, password),
    },
  },
  session: { cookieCache: { enabled: cookieCache, maxAge: 300 } },
  experimental: { joins },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { level: 'error' },
};

if (accounts > 0) {
  const { runMigrations } = await getMigrations(options);
  await runMigrations();
  for (let from = 0; from < accounts; from += BATCH) await seed(from, Math.min(accounts, from + BATCH));
}

/** Accounts as its own sign-up leaves them. */
async function seed(from, to) {
  const now = new Date();
  const numbers = Array.from({ length: to - from }, (_, n) => from + n);
  await pool.query('INSERT INTO `user` (id, name, email, emailVerified, createdAt, updatedAt) VALUES ?', [
    numbers.map((n) => [`bench-user-${n}`, 'Ada Lovelace', `bench-${n}@example.com`, true, now, now]),
  ]);
  await pool.query('INSERT INTO account (id, accountId, providerId, userId, password, createdAt, updatedAt) VALUES ?', [
    numbers.map((n) => [`bench-account-${n}`, `bench-user-${n}`, 'credential', `bench-user-${n}`, passwordHash, now, now]),
  ]);
}

const auth = betterAuth(options);
server.on('request', toNodeHandler(auth));
// Ctrl-C reaches the whole group; the order of the stop is the bench's to decide.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
process.send({ port });
