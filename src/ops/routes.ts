import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { answer, json } from '../http/call.js';
import { endpoint, row, type Row } from '../http/endpoint.js';
import { openapi, type ApiDocument } from '../openapi/endpoint.js';
import { API_PAGE_ROUTES, type ApiPage } from './api-page.js';
import { live, ready, type Readiness } from './health.js';

export type PoolNeeds = Pick<Deps, 'metrics' | 'hashing'>;
export type OpsNeeds = PoolNeeds & { readiness: Readiness; apiPage: ApiPage; apiDocument: ApiDocument };

const Count = Type.Integer({ minimum: 0 });

const metrics = endpoint({
  tag: 'Operations',
  summary: 'What the process counts, for Prometheus',
  replies: { 200: { body: Type.String(), media: 'text/plain', description: 'The text format of Prometheus.' } },
  errors: [],
  handle: async ({ metrics: { registry } }: PoolNeeds) => answer(200, { headers: { 'Content-Type': registry.contentType }, body: await registry.metrics() }),
});

const poolState = Type.Object({ threads: Count, alive: Count, ending: Count, running: Count, waiting: Count, meanRunMs: Type.Number() }, { description: 'How busy it is.' });

const pool = endpoint({
  tag: 'Operations',
  summary: 'State of the hashing pool',
  replies: { 200: poolState },
  errors: [],
  handle: ({ hashing }: PoolNeeds) => Promise.resolve(json(200, hashing.state())),
});

/** Answers at once; `alive` and `ending` show how far it is. */
const resize = endpoint({
  tag: 'Operations',
  summary: 'Set the number of hashing threads until the next start',
  // The bounds of HASH_THREADS.
  body: Type.Object({ threads: Type.Integer({ minimum: 1, maximum: 256 }) }),
  replies: { 200: poolState },
  errors: [],
  handle: ({ hashing }: PoolNeeds, call) => {
    hashing.resize(call.body.threads, `PUT /pool, request ${call.requestId}`);
    return Promise.resolve(json(200, hashing.state()));
  },
});

/** Health, on the public listener too. */
export const HEALTH_ROUTES: Row<{ readiness: Readiness }>[] = [
  row('get', '/health/live', 'anyone', 'safe', null, '-', live),
  row('get', '/health/ready', 'anyone', 'safe', null, '-', ready),
];

/** What the process counts, and its hashing pool. */
export const POOL_ROUTES: Row<PoolNeeds>[] = [
  row('get', '/metrics', 'anyone', 'safe', null, '-', metrics),
  row('get', '/pool', 'anyone', 'safe', null, '-', pool),
  row('put', '/pool', 'anyone', 'cookie', null, '-', resize),
];

/** The ops listener, which is never the public port. */
export const OPS_ROUTES: Row<OpsNeeds>[] = [
  ...HEALTH_ROUTES,
  ...POOL_ROUTES,
  row('get', '/openapi.json', 'anyone', 'safe', null, '-', openapi),
  ...API_PAGE_ROUTES,
];
