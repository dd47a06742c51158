import { Cluster, type Redis, type RedisOptions } from 'ioredis';
import type { Log } from '../log.js';
import type { ClusterAddress } from '../redis-url.js';

/** How often the nodes are asked who serves which slots, in ms: the longest that a failover stays unseen. */
const LOOK_MS = 1000;
/** Attempts to reach a node again, about 6 s of them; then it is gone until the cluster names it again. */
const ATTEMPTS = 8;
/** Redirections that one command follows: to a slot's new node, and while its keys move there. */
const MOST_REDIRECTIONS = 4;
const TRY_AGAIN_MS = 40;

/**
 * A client of a cluster. A node that is away fails its own commands at once, and those of no other node.
 * @param options of each node's connection
 * @param pauseMs how long to wait before the n-th attempt to connect
 * @param tend gets each connection before anything is sent over it
 */
export function createCluster({ nodes, tls, ...account }: ClusterAddress, options: RedisOptions, pauseMs: (attempt: number) => number, tend: (node: Redis) => void, log: Log): Cluster {
  const cluster = new Cluster(nodes, {
    lazyConnect: true,
    enableOfflineQueue: false,
    // Its own check would close every connection of a cluster in which a single node is down.
    enableReadyCheck: false,
    // Names are looked up at each attempt, and certificates are compared with them.
    dnsLookup: (host, found) => found(null, host),
    clusterRetryStrategy: pauseMs,
    // When all are given up, the nodes of the address are asked again: the whole cluster may have moved.
    clusterNodeRetryStrategy: (attempt) => (attempt > ATTEMPTS ? null : pauseMs(attempt)),
    slotsRefreshInterval: LOOK_MS,
    maxRedirections: MOST_REDIRECTIONS,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    redisOptions: { ...options, ...account, ...(tls ? { tls: {} } : {}) },
  });
  cluster.on('error', (error: Error) => log.debug({ reason: error.message }, 'redis cluster lost'));
  cluster.on('node error', (error: Error) => log.debug({ reason: error.message }, 'redis connection lost'));

  // The first command on a new connection waits for it and those behind it are refused, so connections come first.
  const open = (node: Redis): Promise<void> => (node.status === 'wait' ? node.connect().catch(() => undefined) : Promise.resolve());
  cluster.on('+node', (node: Redis) => {
    tend(node);
    if (cluster.status === 'ready') setImmediate(() => void open(node));
  });
  const connect = cluster.connect.bind(cluster);
  cluster.connect = async () => {
    await connect();
    await Promise.all(cluster.nodes().map(open));
  };
  return cluster;
}

/**
 * Whether primaries answer and serve their slots; `PING` would be answered by a cluster that refuses everything else.
 * @param which `any`: one of them does; `every`: all do
 * @throws Error when they do not
 */
export async function demandPrimaries(cluster: Cluster, which: 'any' | 'every'): Promise<void> {
  const asked = cluster.nodes('master').map(async (node) => {
    if (node.status !== 'ready') throw new Error('a node of the cluster is away');
    const info = await node.cluster('INFO');
    if (!info.includes('cluster_state:ok') || (which === 'every' && !info.includes('cluster_slots_ok:16384'))) throw new Error('the cluster does not serve every slot');
  });
  if (which === 'any' || asked.length === 0) await Promise.any(asked);
  else await Promise.all(asked);
}
