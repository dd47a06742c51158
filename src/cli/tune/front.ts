import { generateKeyPairSync } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { loadConfig } from '../../config/load.js';
import { json } from '../../http/call.js';
import { endpoint, row, type Row } from '../../http/endpoint.js';
import { createPipeline } from '../../http/pipeline.js';
import { listen } from '../../http/server.js';
import { createKeyring } from '../../keyring.js';
import { createLog } from '../../log.js';
import { createMetrics } from '../../ops/metrics.js';
import { POOL_ROUTES, type PoolNeeds } from '../../ops/routes.js';
import { createHashing } from '../../pools/hashing.js';
import type { SigningJob } from '../../../workers/protocol.js';

/**
 * The service without its stores, for machines where none can be had: the front end, the fair queue, the hashing
 * threads and the signature are the real ones; accounts are known by heart and sessions forgotten.
 */
const config = loadConfig(process.env);
const log = createLog(config.logLevel);
const hashes = new Map(Object.entries(JSON.parse(process.env['TUNE_HASHES']!) as Record<string, string>));
const metrics = createMetrics();
const hashing = createHashing(config, log, { waited: () => undefined, ran: () => undefined, shed: () => undefined });
const key = { alg: 'ES256', kid: 'tune', privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string } as const;
const needs: PoolNeeds = { metrics, hashing };

const login = endpoint({
  tag: 'Operations',
  summary: 'A login without its stores',
  body: Type.Object({ email: Type.String(), password: Type.String() }),
  replies: { 200: Type.Object({ accessToken: Type.Union([Type.String(), Type.Null()]) }) },
  errors: ['OVERLOADED', 'INVALID_CREDENTIALS'],
  handle: async (_needs: PoolNeeds, call) => {
    const { email, password } = call.body;
    const group = /^tune-(\w+)-/.exec(email)?.[1] ?? '';
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: config.jwtIssuer, aud: config.jwtAudience, sub: email, sid: call.requestId, jti: call.requestId, iat: now, exp: now + config.accessTtlS, roles: [], amr: ['pwd'], auth_time: now };
    const { token } = await hashing.verify(hashes.get(group) ?? null, password, call, { ...key, claims } satisfies SigningJob);
    log.info({ requestId: call.requestId, outcome: 'success' }, 'signed in');
    return json(200, { accessToken: token });
  },
});

const guards = { authenticate: () => Promise.resolve(null), refreshSession: () => null, limit: () => Promise.resolve() };
const options = { config, keyring: createKeyring(config.secretKey, null), log, guards, observe: () => undefined };
const rows: Row<PoolNeeds>[] = [row('post', '/api/auth/login', 'anyone', 'login', null, 'tokens', login)];
const server = await listen({ host: config.host, port: 0, tls: null, ...createPipeline(rows, needs, options) });
const ops = await listen({ host: config.opsHost, port: 0, tls: null, ...createPipeline(POOL_ROUTES, needs, options) });
process.on('SIGTERM', () => process.exit(0));
log.info({ port: server.port, opsPort: ops.port }, 'listening');
