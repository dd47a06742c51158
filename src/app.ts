import { RETENTION, retain } from './account/retention.js';
import { createTokenReader } from './auth/access-token.js';
import { createFlights } from './auth/flights.js';
import { forgetFailures } from './auth/forgiveness.js';
import { authenticate } from './auth/authenticate.js';
import { createDeviceLabels } from './auth/device.js';
import { createGate } from './auth/gate.js';
import { createOpener } from './auth/opening.js';
import { createHeldReplies } from './auth/held-replies.js';
import { createProviders } from './auth/oauth/provider.js';
import { refreshSession } from './auth/refresh.js';
import { idleMs } from './auth/session.js';
import { upkeep } from './auth/key-rotation.js';
import { KEY_TIMES } from './auth/key-times.js';
import { openSigningKeys } from './auth/signing-keys.js';
import { startClock } from './clock.js';
import type { Config } from './config/settings.js';
import { createErrands } from './errands.js';
import { loadHandlers } from './events/handlers.js';
import { startRelay } from './events/relay.js';
import { createDeletionValidators } from './events/validators.js';
import { createPipeline, type Guards } from './http/pipeline.js';
import { listen, type Server } from './http/server.js';
import { createKeyring } from './keyring.js';
import { createLimits, LIMITS, type LimitName } from './limits.js';
import type { Log } from './log.js';
import { startSender } from './notify/sender.js';
import { createDocument } from './openapi/document.js';
import { renderDocument } from './openapi/endpoint.js';
import { createApiPage } from './ops/api-page.js';
import { createReadiness } from './ops/health.js';
import { createMetrics, observer, watchHashing, type BatchKind } from './ops/metrics.js';
import { OPS_ROUTES, type OpsNeeds } from './ops/routes.js';
import { loadPasswordRules } from './passwords/rules.js';
import { openPlaces } from './places.js';
import { createHashing } from './pools/hashing.js';
import { createSigning } from './pools/signing.js';
import { PUBLIC_ROUTES, type RouteNeeds } from './routes.js';
import { startSchedule, type Schedule } from './schedule.js';
import { gather } from './store/gather.js';
import { createMysql } from './store/mysql.js';
import { createRedis } from './store/redis.js';
import { loadScripts } from './store/scripts.js';
import { liveSessionReader, refreshReader, rotator } from './store/sessions.js';
import { findForLogin, type LoginQuery, type Seen } from './store/login-accounts.js';
import { liveProfileReader } from './store/profiles.js';

export interface App {
  readonly port: number;
  readonly opsPort: number;
  readonly needs: RouteNeeds;
  /** Stops in a fixed order: readiness, held replies, listeners and the nightly task, errands, relay, sender, threads, stores. */
  close(): Promise<void>;
}

/** Requests under way when the process is told to stop have so long, in ms. */
const DRAIN_MS = 8_000;

export interface BuildOptions {
  /** Whether errors that endpoints do not declare become INTERNAL; tests say so. */
  strict?: boolean;
}

/** Longest time that a login waits for others to share its statements, in ms, and how many share them at most. */
const MOST_LINGER_MS = 100;
const MOST_LOGINS = 32;

/** Builds everything once and wires it: the only place that knows all parts. */
export async function buildApp(config: Config, log: Log, { strict = false }: BuildOptions = {}): Promise<App> {
  const keyring = createKeyring(config.secretKey, config.secretKeyPrevious);
  const places = await openPlaces(config, log);
  const metrics = createMetrics();
  const mysql = createMysql({ url: config.mysqlUrl, connections: config.mysqlConnections, log });
  const redis = createRedis(config.redisUrl, log);
  await redis.connect();
  const scripts = loadScripts(redis, observer(metrics.lua));
  const clock = await startClock(mysql);
  const batchesOf = (what: BatchKind): ((items: number) => void) => {
    const sizes = metrics.batches.labels({ what });
    return (items) => sizes.observe(items);
  };
  const hashing = createHashing(config, log, {
    waited: (seconds) => metrics.hashWait.observe(seconds),
    ran: (seconds) => metrics.hashRun.observe(seconds),
    shed: (reason) => metrics.hashShed.inc({ reason }),
    batch: batchesOf('password'),
  });
  watchHashing(metrics, hashing);
  const signing = createSigning(log);
  const readiness = createReadiness({ mysql, redis });

  const handlers = await loadHandlers({ config, log });
  const errands = createErrands(log);
  const relay = startRelay({ mysql, scripts, log, config, metrics }, handlers);
  const sender = startSender({ mysql, log, config, keyring, metrics, clock });

  const gate = createGate({ config, scripts }, redis);
  // While logins queue for the hashing threads, sharing a statement delays none of them. Shorter than the backlog, or
  // the threads would run out of work meanwhile.
  const lingerMs = (): number => Math.min(MOST_LINGER_MS, hashing.backlogMs() * 0.75);
  const seenByEmail = gather((queries: LoginQuery[]) => findForLogin(mysql, queries, places.isTelling), { most: MOST_LOGINS, lingerMs, onBatch: batchesOf('account') });
  const seenById = gather((queries: LoginQuery[]) => findForLogin(mysql, queries, places.isTelling), { most: MOST_LOGINS, onBatch: batchesOf('account') });
  const lookUp = (query: LoginQuery): Promise<Seen> => (query.by === 'email' ? seenByEmail : seenById)(query);

  const needs: RouteNeeds & OpsNeeds = {
    ...{ config, keyring, log, metrics, clock, mysql, redis, scripts, hashing, signing, readiness },
    limits: createLimits(config, keyring, scripts),
    signingKeys: await openSigningKeys({ config, keyring, mysql, log }),
    heldReplies: createHeldReplies((held) => metrics.heldReplies.set(held)),
    passwordRules: await loadPasswordRules(config, log),
    gate,
    forgetFailures: (account) => forgetFailures({ gate, keyring, mysql }, account),
    lookUp,
    accountOf: async (query) => (await lookUp(query)).account,
    openSession: createOpener({ config, keyring, log, mysql, gate, clock, events: relay, deviceLabel: createDeviceLabels() }, lingerMs, batchesOf('opening')),
    flights: createFlights(),
    oauthProviders: createProviders({ config, log }),
    errands,
    events: relay,
    notify: sender,
    deletionValidators: createDeletionValidators({ config, log, redis, scripts, clock }, handlers),
    refreshState: refreshReader(mysql, idleMs(config), batchesOf('refresh')),
    rotate: rotator(mysql, idleMs(config), batchesOf('rotation')),
    liveSession: liveSessionReader(mysql, batchesOf('session')),
    liveProfile: liveProfileReader(mysql, batchesOf('profile')),
    apiDocument: renderDocument(createDocument(PUBLIC_ROUTES)),
    apiPage: createApiPage(),
  };

  const readToken = createTokenReader(needs);
  const guards: Guards = {
    authenticate: (call, reads) => authenticate({ liveSession: needs.liveSession, liveProfile: needs.liveProfile, readToken }, call, reads),
    refreshSession: (call) => refreshSession(keyring, call),
    place: (call) => places.of(call),
    async limit(name, call) {
      const limit = name as LimitName;
      await needs.limits.hit(limit, LIMITS[limit].by === 'user' ? call.principal!.userId : call.network);
    },
  };
  const observe = observer(metrics.http);
  const tls = config.tlsCertFile !== null && config.tlsKeyFile !== null ? { certFile: config.tlsCertFile, keyFile: config.tlsKeyFile } : null;
  const server = await listen({ host: config.host, port: config.port, tls, ...createPipeline(PUBLIC_ROUTES, needs, { config, keyring, log, guards, observe, strict }) });
  const ops = await listen({ host: config.opsHost, port: config.opsPort, tls: null, ...createPipeline(OPS_ROUTES, needs, { config, keyring, log, guards, observe: () => undefined, strict }) });
  const keyUpkeep = startSchedule(needs, { name: 'signing-keys', at: KEY_TIMES.upkeepAt, timeZone: 'UTC', work: () => upkeep(needs) });
  const retention = config.retentionCron ? scheduleRetention(needs) : null;

  return {
    port: server.port,
    opsPort: ops.port,
    needs,
    async close() {
      readiness.leave();
      needs.heldReplies.releaseAll();
      await Promise.all([stop(server, ops), retention?.close(), keyUpkeep.close()]);
      needs.signingKeys.close();
      // What was promised with a reply comes first: it may still write events and messages.
      await errands.close();
      await Promise.all([relay.close(), sender.close()]);
      clock.stop();
      places.close();
      await Promise.all([hashing.close(), signing.close()]);
      redis.disconnect();
      await mysql.close();
      metrics.close();
    },
  };
}

/** The nightly purge, and the one that was missed while nobody ran. */
const scheduleRetention = (needs: RouteNeeds): Schedule =>
  startSchedule(needs, {
    name: RETENTION,
    at: '0 2 * * *',
    timeZone: needs.config.retentionTz,
    work: (turn, signal) =>
      retain(needs, turn, {
        signal,
        progress(purged) {
          if (purged === 0) return;
          needs.metrics.purged.inc();
          needs.events.wake();
        },
      }),
  });

async function stop(server: Server, ops: Server): Promise<void> {
  await server.close(DRAIN_MS);
  await ops.close(0);
}
