import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pause } from '../support/attempts.js';
import { ownMysql, type OwnMysql } from '../support/mysql-server.js';
import { startNodes, type Node, type Nodes } from '../support/nodes.js';
import { startProxy, type Proxy } from '../support/proxy.js';
import { freePort, oneRedis, type OwnRedis, type Teardown } from '../support/stores.js';
import { startConsumer, type Consumer } from './consumer.js';
import { openMailbox, type Mailbox } from './mailbox.js';

/** A place where a node of the service runs, one after the other on one port. */
export interface Place {
  name: string;
  node: Node;
  /** Whether a fault ended its node, or is about to, and the next one is not up yet. */
  isDoomed: boolean;
  /** How many nodes it has had. */
  lives: number;
}

export interface World extends Pick<Nodes, 'needs' | 'account'> {
  places: Place[];
  mysqlServer: OwnMysql;
  redis: OwnRedis;
  /** Ways to the stores that all nodes share. */
  ways: { mysql: Proxy; redis: Proxy };
  consumer: Consumer;
  mailbox: Mailbox;
  /** What nodes, and runs of the nightly task, are started with. */
  env: Record<string, string>;
  /** Sentences on what must not have happened. */
  complaints: string[];
  killRedis: () => Promise<void>;
  restartRedis: () => Promise<void>;
  /** Ends the node of a place and starts the next one there; gives the exit code, null after a signal that it could not catch. */
  replace: (place: Place, signal: 'SIGKILL' | 'SIGTERM') => Promise<number | null>;
}

const NODES = 3;
const MOST_STARTS = 6;
const SETTINGS = { MYSQL_CONNECTIONS: '6', HASH_QUEUE_MS: '3000', LOGIN_DELAYS_S: '0.02,0.04,0.08', LOCKOUT_MINUTES: '0.05,0.05,0.05', DELETION_VALIDATORS: '' };

/** Servers, nodes and everything else that the faults of a soak happen to. */
export async function startWorld(t: Teardown): Promise<World> {
  const mysqlServer = await ownMysql(t);
  if (!mysqlServer) throw new Error('no MySQL or MariaDB program on this machine: name one in MYSQLD');
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-soak-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  // As in production: what Redis has answered outlives its restart.
  const startRedis = (port: number): Promise<OwnRedis> => oneRedis(t, ['--dir', folder, '--appendonly', 'yes', '--appendfsync', 'everysec'], port);
  const outbox = join(folder, 'outbox.jsonl');
  writeFileSync(outbox, '');
  const world = { complaints: [] as string[] } as World;
  world.redis = await startRedis(await freePort());
  const redisUrl = world.redis.url;
  world.ways = { mysql: await startProxy(t, mysqlServer.url), redis: await startProxy(t, redisUrl) };
  const { env, needs, account, start } = await startNodes(t, 0, { ...SETTINGS, MYSQL_URL: mysqlServer.url, REDIS_URL: redisUrl, NOTIFY_FILE: outbox });
  world.env = { ...env, MYSQL_URL: world.ways.mysql.via(mysqlServer.url), REDIS_URL: world.ways.redis.via(redisUrl) };
  Object.assign(world, { needs, account, mysqlServer, consumer: startConsumer(t, redisUrl), mailbox: openMailbox(outbox) });
  t.teardown(() => world.mailbox.close());

  // A node that finds no MySQL does not start: as a supervisor does, it is tried again.
  const begin = async (port: number, tries = 1): Promise<Node> =>
    start({ ...world.env, PORT: String(port) }).catch((error: unknown) => {
      if (tries === MOST_STARTS) throw error;
      return pause(500).then(() => begin(port, tries + 1));
    });
  const watch = (place: Place): void => {
    const { node } = place;
    void node.ended.then((code) => {
      if (!place.isDoomed) world.complaints.push(`${place.name} ended by itself, with code ${String(code)}: ${node.output().slice(-2000)}`);
    });
  };
  const ports = await Promise.all(Array.from({ length: NODES }, () => freePort()));
  world.places = await Promise.all(ports.map(async (port, i) => ({ name: `node ${i + 1}`, node: await begin(port), isDoomed: false, lives: 1 })));
  world.places.forEach(watch);
  // Registered after the nodes, so that it comes before they are ended.
  t.teardown(() => world.places.forEach((place) => (place.isDoomed = true)));
  return Object.assign(world, {
    killRedis: () => world.redis.stop('SIGKILL'),
    restartRedis: async () => void (world.redis = await startRedis(world.redis.port)),
    replace: async (place: Place, signal: 'SIGKILL' | 'SIGTERM') => {
      place.isDoomed = true;
      const code = await place.node.stop(signal);
      noteOutput(world, place);
      place.node = await begin(ports[world.places.indexOf(place)]!);
      place.lives += 1;
      watch(place);
      place.isDoomed = false;
      return code;
    },
  });
}

/** What a node has written that it must never write. */
export function noteOutput(world: World, { name, node }: Place): void {
  const bad = node.output().split('\n').filter((line) => /"level":"fatal"|"msg":"request failed"|does not declare|uncaught|unhandled/i.test(line));
  for (const line of new Set(bad.slice(0, 5))) world.complaints.push(`${name} wrote: ${line.slice(0, 1500)}`);
}
