import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { clusterAddress } from '../../src/redis-url.js';
import { freePort, oneRedis, type OwnRedis, type Teardown } from './stores.js';

const SLOTS = 16384;
/** After so long without an answer a node counts as failing, in ms. */
export const NODE_TIMEOUT_MS = 1000;
/** A primary that has just started waits 2 s before it serves. */
const READY_MS = 20_000;

export interface OwnCluster {
  /** redis+cluster://, with every primary in it. */
  url: string;
  primaries: OwnRedis[];
  replicas: OwnRedis[];
  /** The primary that serves a key, by its place in `primaries`. */
  primaryOf: (key: string) => Promise<number>;
  /** Starts a node again that was killed, on its port and with what it knew of the others. */
  restart: (node: OwnRedis) => Promise<OwnRedis>;
}

export interface ClusterPlan {
  primaries?: number;
  /** Of each primary. */
  replicas?: 0 | 1;
  /** Whether slots are served while others are not. */
  partly?: boolean;
  args?: string[];
}

/** A plain client of a server or a cluster, as other services and operators use. */
export function dial(url: string): Redis | Cluster {
  const address = clusterAddress(url);
  const client = address ? new Cluster(address.nodes) : new Redis(url);
  client.on('error', () => undefined);
  return client;
}

/** How often servers answered an error of this kind since they started. */
export async function errorsOf(servers: OwnRedis[], kind: string): Promise<number> {
  const counts = servers.map(async ({ url }) => {
    const admin = new Redis(url);
    const stats = await admin.info('errorstats').finally(() => admin.disconnect());
    return Number(new RegExp(`^errorstat_${kind}:count=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  });
  return (await Promise.all(counts)).reduce((sum, n) => sum + n, 0);
}

/** A cluster of its own: real servers that know each other, and share the slots equally. */
export async function ownCluster(t: Teardown, { primaries: count = 3, replicas: copies = 0, partly = true, args = [] }: ClusterPlan = {}): Promise<OwnCluster> {
  const busPorts = new Map<number, number>();
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-cluster-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const begin = async (port: number): Promise<OwnRedis> => {
    const busPort = busPorts.get(port) ?? (await freePort());
    busPorts.set(port, busPort);
    return oneRedis(t, ['--cluster-enabled', 'yes', '--cluster-config-file', join(folder, `${port}.conf`), '--cluster-port', String(busPort), '--cluster-node-timeout', String(NODE_TIMEOUT_MS), '--cluster-require-full-coverage', partly ? 'no' : 'yes', '--repl-diskless-sync-delay', '0', ...args], port);
  };
  const servers = await Promise.all(Array.from({ length: count * (1 + copies) }, async () => begin(await freePort())));
  const [primaries, replicas] = [servers.slice(0, count), servers.slice(count)];
  const admins = servers.map(({ url }) => new Redis(url));
  admins.forEach((admin) => admin.on('error', () => undefined));
  t.teardown(() => admins.forEach((admin) => admin.disconnect()));

  const firstSlot = (i: number): number => Math.floor((i * SLOTS) / count);
  await Promise.all(primaries.map((_, i) => admins[i]!.call('CLUSTER', 'ADDSLOTSRANGE', firstSlot(i), firstSlot(i + 1) - 1)));
  // Each its own epoch, as redis-cli does: without one they would argue about it first.
  await Promise.all(servers.map((_, i) => admins[i]!.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)));
  for (const { port } of servers.slice(1)) await admins[0]!.call('CLUSTER', 'MEET', '127.0.0.1', port, busPorts.get(port)!);
  const knowAll = async (admin: Redis): Promise<boolean> => String(await admin.call('CLUSTER', 'INFO')).includes(`cluster_known_nodes:${servers.length}`);
  await eventually(async () => (await Promise.all(admins.map(knowAll))).every(Boolean));
  await Promise.all(replicas.map(async (_, i) => replicate(admins[count + i]!, String(await admins[i]!.call('CLUSTER', 'MYID')))));
  const serves = async (admin: Redis): Promise<boolean> => /cluster_state:ok[^]*cluster_slots_ok:16384/.test(String(await admin.call('CLUSTER', 'INFO')));
  await eventually(async () => (await Promise.all(admins.map(serves))).every(Boolean));
  for (const admin of admins.slice(count)) await eventually(async () => (await admin.info('replication')).includes('master_link_status:up'));

  return {
    url: `redis+cluster://${primaries.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    primaries,
    replicas,
    primaryOf: async (key) => {
      const slot = await Promise.any(admins.filter(({ status }) => status === 'ready').map((admin) => admin.call('CLUSTER', 'KEYSLOT', key)));
      return primaries.findIndex((_, i) => Number(slot) < firstSlot(i + 1));
    },
    restart: (node) => begin(node.port),
  };
}

/** A node follows another only once it has heard of it. */
async function replicate(replica: Redis, primary: string): Promise<void> {
  await eventually(() => replica.call('CLUSTER', 'REPLICATE', primary).then(() => true, () => false));
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + READY_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error('the nodes of a cluster did not find each other');
    await pause(20);
  }
}
