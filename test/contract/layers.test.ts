import t from 'tap';
import { filesBelow, importsOf, textOf } from './imports.js';

const FEATURE = ['http/call', 'http/endpoint', 'http/fields', 'http/cookies', 'http/csrf', 'store', 'notify', 'pools', 'events', 'errors', 'keyring', 'passwords'];

/**
 * Who may import whom: a layer is a folder of src or a file in it. Whatever stands alone in src and is not listed
 * is a leaf, which imports nothing and may be imported by all. Imports of types are exempt.
 */
const MAY_IMPORT: Record<string, string[]> = {
  main: ['app', 'config', 'log', 'store/migrate', 'reload'],
  app: ['auth', 'account', 'http', 'store', 'notify', 'pools', 'events', 'ops', 'config', 'errors', 'log', 'keyring', 'clock', 'limits', 'schedule', 'routes', 'passwords', 'openapi'],
  cli: ['auth', 'account', 'http/validate', 'store', 'notify', 'pools', 'events', 'config', 'errors', 'log', 'keyring', 'clock', 'limits', 'passwords', 'http/call', 'http/endpoint', 'http/pipeline', 'http/server', 'ops', 'routes', 'openapi'],
  reload: ['config', 'errors'],
  routes: ['auth', 'account', 'http/endpoint', 'openapi/endpoint', 'ops/routes'],
  auth: FEATURE,
  account: FEATURE,
  http: ['errors', 'keyring', 'log'],
  openapi: ['http', 'errors'],
  ops: ['http/call', 'http/endpoint', 'openapi/endpoint', 'store', 'errors', 'log'],
  store: ['errors', 'log'],
  notify: ['store', 'errors', 'log', 'keyring'],
  events: ['store', 'errors', 'log', 'keyring'],
  pools: ['store/gather', 'errors', 'log'],
  passwords: ['errors', 'log'],
  limits: ['store', 'errors', 'keyring', 'log'],
  schedule: ['store', 'errors', 'log'],
  config: [],
};

/** Each driver's one door; migrations open a connection of their own, before there is a pool. */
const DOORS: Record<string, string[]> = {
  'uWebSockets.js': ['src/http/server.ts'],
  'mysql2': ['src/store/mysql.ts', 'src/store/migrate.ts'],
  'ioredis': ['src/store/redis.ts', 'src/store/cluster.ts'],
  'piscina': ['src/pools/thread.ts'],
  'maxmind': ['src/places.ts'],
};

const FOLDERS = new Set([...filesBelow('src', '.ts'), ...filesBelow('workers', '.ts')].map((file) => file.split('/').slice(0, 2).join('/')).filter((folder) => !folder.endsWith('.ts')));

/** `http/server` of src/http/server.ts, `log` of src/log.ts. */
const moduleOf = (file: string): string => file.slice('src/'.length, -'.ts'.length);
const layerOf = (file: string): string => moduleOf(file).split('/')[0]!;

/** Every import of a file that the tables above forbid, as sentences. */
function violations(file: string, text: string): string[] {
  return importsOf(file, text).flatMap((target) => {
    const forbidden = file.startsWith('workers/') ? forbiddenToWorkers(target) : forbiddenTo(file, target);
    return forbidden ? [`${file} must not import ${target}`] : [];
  });
}

const forbiddenToWorkers = (target: string): boolean => target in DOORS || target.startsWith('src/');

function forbiddenTo(file: string, target: string): boolean {
  if (target in DOORS) return !DOORS[target]!.includes(file);
  if (target.startsWith('workers/')) return !(layerOf(file) === 'cli' || layerOf(file) === 'pools');
  if (!target.startsWith('src/') || layerOf(target) === layerOf(file)) return false;
  const isLeaf = !FOLDERS.has(`src/${layerOf(target)}`) && !(layerOf(target) in MAY_IMPORT);
  const allowed = MAY_IMPORT[layerOf(file)] ?? [];
  return !isLeaf && !allowed.includes(layerOf(target)) && !allowed.includes(moduleOf(target));
}

t.test('every import of src and workers goes the way the table allows', (t) => {
  const files = [...filesBelow('src', '.ts'), ...filesBelow('workers', '.ts')];
  t.ok(files.length > 50, `${files.length} files`);
  t.same(files.flatMap((file) => violations(file, textOf(file))), []);
  t.end();
});

t.test('every folder of src has a line in the table', (t) => {
  const folders = [...FOLDERS].filter((folder) => folder.startsWith('src/')).map((folder) => folder.slice(4));
  t.same(folders.filter((folder) => !(folder in MAY_IMPORT)), []);
  t.end();
});

t.test('the check finds a planted violation of every kind', (t) => {
  const planted: [string, string][] = [
    ['src/http/pipeline.ts', "import { login } from '../auth/login.js';"],
    ['src/auth/login.ts', "import { otp } from '../account/otp.js';"],
    ['src/account/otp.ts', "export { login } from '../auth/login.js';"],
    ['src/auth/login.ts', "import { buildApp } from '../app.js';"],
    ['src/auth/login.ts', "import { listen } from '../http/server.js';"],
    ['src/auth/login.ts', "import { createPool } from 'mysql2/promise';"],
    ['src/auth/login.ts', "const { Redis } = await import('ioredis');"],
    ['src/ops/health.ts', "const uws = createRequire(import.meta.url)('uWebSockets.js');"],
    ['src/ops/health.ts', "function late() { return require('piscina'); }"],
    ['src/store/users.ts', "import '../http/call.js';"],
    ['src/store/users.ts', "import { type Call } from '../http/call.js';"],
    ['src/errors.ts', "import { createLog } from './log.js'; import { KEYS } from './store/redis.js';"],
    ['src/config/load.ts', "import { KEYS } from '../store/redis.js';"],
    ['src/auth/login.ts', "import { hash } from '../../workers/argon2.js';"],
    ['workers/hashing.ts', "import { ApiError } from '../src/errors.js';"],
    ['workers/hashing.ts', "export * from '../src/errors.js';"],
  ];
  for (const [file, text] of planted) t.equal(violations(file, text).length, 1, `${file}: ${text}`);
  t.end();
});

t.test('the check lets pass what the table allows', (t) => {
  const fine: [string, string][] = [
    ['src/store/users.ts', "import type { Call } from '../http/call.js'; export type { Reply } from '../http/call.js';"],
    ['src/auth/login.ts', "import { endpoint } from '../http/endpoint.js'; import { fail } from './attempt.js'; import { v4 } from 'uuid'; import { join } from 'node:path';"],
    ['src/http/server.ts', "const uws = createRequire(import.meta.url)('uWebSockets.js');"],
    ['src/store/mysql.ts', "import { createPool } from 'mysql2/promise';"],
    ['workers/hashing.ts', "import { read } from './phc.js'; import { hash } from '@node-rs/argon2';"],
    ['src/auth/login.ts', "// import { otp } from '../account/otp.js';\nconst text = \"import('ioredis')\";"],
  ];
  for (const [file, text] of fine) t.same(violations(file, text), [], `${file}: ${text}`);
  t.end();
});
