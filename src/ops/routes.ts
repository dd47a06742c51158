import type { Deps } from '../deps.js';
import { json, type Reply } from '../http/call.js';
import { endpoint, row, type Row } from '../http/endpoint.js';
import { live, ready, type Readiness } from './health.js';

export type OpsNeeds = Pick<Deps, 'metrics' | 'hashing'> & { readiness: Readiness };

const metrics = endpoint({
  errors: [],
  handle: async ({ metrics: { registry } }: OpsNeeds): Promise<Reply> => ({ status: 200, headers: { 'Content-Type': registry.contentType }, body: await registry.metrics() }),
});

const pool = endpoint({ errors: [], handle: ({ hashing }: OpsNeeds): Promise<Reply> => Promise.resolve(json(200, hashing.state())) });

/** Health, on the public listener too. */
export const HEALTH_ROUTES: Row<{ readiness: Readiness }>[] = [
  row('get', '/health/live', 'anyone', 'safe', null, '-', live),
  row('get', '/health/ready', 'anyone', 'safe', null, '-', ready),
];

/** The ops listener, which is never the public port. */
export const OPS_ROUTES: Row<OpsNeeds>[] = [
  ...HEALTH_ROUTES,
  row('get', '/metrics', 'anyone', 'safe', null, '-', metrics),
  row('get', '/pool', 'anyone', 'safe', null, '-', pool),
];
