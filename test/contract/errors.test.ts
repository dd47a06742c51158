import t from 'tap';
import { ApiError, ERRORS, type ErrorCode } from '../../src/errors.js';
import { endpoint, row } from '../../src/http/endpoint.js';
import type { Incoming } from '../../src/http/exchange.js';
import { createPipeline, impliedErrors } from '../../src/http/pipeline.js';
import { createLog } from '../../src/log.js';
import { OPS_ROUTES } from '../../src/ops/routes.js';
import { PUBLIC_ROUTES } from '../../src/routes.js';
import { filesBelow, textOf } from './imports.js';

const ROWS = [...PUBLIC_ROUTES, ...OPS_ROUTES];

/** What the pipeline answers before it knows a row. */
const WITHOUT_ROW: ErrorCode[] = ['NOT_FOUND', 'METHOD_NOT_ALLOWED'];

const declared = new Set<string>([...WITHOUT_ROW, ...ROWS.flatMap((row) => [...impliedErrors(row), ...row.endpoint.errors])]);

/** Where each code is thrown: a code stands in quotes in a feature's source. */
const named = new Map<string, string[]>();
for (const file of filesBelow('src', '.ts').filter((name) => name !== 'src/errors.ts')) {
  for (const [, code] of textOf(file).matchAll(/'([A-Z][A-Z_]+)'/g)) if (code! in ERRORS) named.set(code!, [...(named.get(code!) ?? []), file]);
}

t.test('every code that the sources name is declared by a row or answered without one', (t) => {
  t.ok(named.size > 15);
  t.same([...named].filter(([code]) => !declared.has(code)), []);
  t.end();
});

t.test('every code of the catalogue can be met', (t) => {
  t.same(Object.keys(ERRORS).filter((code) => !declared.has(code)), []);
  t.end();
});

t.test('every declared code is named somewhere, and no row declares what its columns imply', (t) => {
  t.same([...declared].filter((code) => !named.has(code)), []);
  for (const row of ROWS) {
    const repeated = row.endpoint.errors.filter((code, i, all) => impliedErrors(row).includes(code) || all.indexOf(code) !== i);
    t.same(repeated, [], `${row.method} ${row.path}`);
  }
  t.end();
});

const incoming = (path: string): Incoming => ({ requestId: 'r', receivedAt: performance.now(), method: 'GET', path, query: '', headers: { get: () => undefined, twice: () => false }, peer: '127.0.0.1', body: Buffer.alloc(0), gone: () => new AbortController().signal });

t.test('in tests an error that a row does not declare is 500, so that none goes unseen', async (t) => {
  const throwing = (errors: ErrorCode[]) => endpoint({ tag: 'Operations', summary: 'Fail', replies: {}, errors, handle: () => Promise.reject(new ApiError('OTP_LOCKED')) });
  const rows = [row('get', '/declared', 'anyone', 'safe', null, '-', throwing(['OTP_LOCKED'])), row('get', '/undeclared', 'anyone', 'safe', null, '-', throwing([]))];
  const config = { trustedProxies: [], corsOrigins: [], trustTlsProxy: false, tlsCertFile: null, cookieDomainXsrf: null };
  const guards = { authenticate: () => Promise.resolve(null), limit: () => Promise.resolve(), refreshSession: () => null };
  const build = (strict: boolean) => createPipeline(rows, {}, { config, keyring: null as never, log: createLog('silent'), guards, observe: () => undefined, strict });
  t.equal((await build(true).handle(incoming('/declared'))).status, 429);
  t.equal((await build(true).handle(incoming('/undeclared'))).status, 500);
  t.equal((await build(false).handle(incoming('/undeclared'))).status, 429, 'in production the client learns what is the matter');
});
