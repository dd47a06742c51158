import { Redis } from 'ioredis';
import { pause } from '../support/attempts.js';
import { createClient } from '../support/client.js';
import type { Chance } from './chance.js';
import type { Place, World } from './world.js';

/** Something that breaks for a while. `end` puts it right again. */
export interface Fault {
  name: string;
  begin: (world: World, chance: Chance) => Promise<unknown>;
  end?: (world: World) => Promise<unknown>;
}

const tell = async ({ redis }: World, ...command: [string, ...string[]]): Promise<void> => {
  const admin = new Redis(redis.url);
  admin.on('error', () => undefined);
  await admin.call(...command).finally(() => admin.disconnect());
};

/** The first node lives through the whole soak, so that its memory can be watched. */
const victim = ({ places }: World, chance: Chance): Place => chance.pick(places.slice(1));

const SIGTERM_MS = 10_000;

/** Ends a node as an operator does. */
async function restart(world: World, chance: Chance): Promise<void> {
  const place = victim(world, chance);
  const told = performance.now();
  let ms = 0;
  void place.node.ended.then(() => (ms = performance.now() - told));
  const code = await world.replace(place, 'SIGTERM');
  if (code !== 0 || ms > SIGTERM_MS) world.complaints.push(`T65: ${place.name} ended with code ${String(code)} after ${ms.toFixed(0)} ms of SIGTERM`);
}

/** Has a node exchange its hashing threads. */
async function exchangeThreads({ places }: World, chance: Chance): Promise<void> {
  const ops = createClient(chance.pick(places).node.opsBase);
  for (const threads of [3, 1, 2, 1]) {
    await ops.request('PUT', '/pool', { body: { threads } });
    await pause(150);
  }
}

export const FAULTS: Fault[] = [
  { name: 'Redis killed and restarted', begin: (world) => world.killRedis(), end: (world) => world.restartRedis() },
  { name: 'SCRIPT FLUSH', begin: (world) => tell(world, 'SCRIPT', 'FLUSH') },
  { name: 'FLUSHALL', begin: (world) => tell(world, 'FLUSHALL') },
  { name: 'CLIENT PAUSE', begin: (world) => tell(world, 'CLIENT', 'PAUSE', '1500', 'ALL') },
  { name: 'Redis out of memory', begin: (world) => tell(world, 'CONFIG', 'SET', 'maxmemory', '1'), end: (world) => tell(world, 'CONFIG', 'SET', 'maxmemory', '0') },
  { name: 'way to Redis cut', begin: async ({ ways }) => ways.redis.cut() },
  { name: 'way to Redis slow', begin: async ({ ways }) => ways.redis.delay(100), end: async ({ ways }) => ways.redis.delay(0) },
  { name: 'way to Redis hangs', begin: ({ ways }) => ways.redis.become('hang'), end: ({ ways }) => ways.redis.become('pass') },
  { name: 'MySQL killed and restarted', begin: ({ mysqlServer }) => mysqlServer.kill(), end: ({ mysqlServer }) => mysqlServer.restart() },
  { name: 'MySQL stopped', begin: async ({ mysqlServer }) => mysqlServer.signal('SIGSTOP'), end: async ({ mysqlServer }) => mysqlServer.signal('SIGCONT') },
  { name: 'MySQL read-only', begin: ({ mysqlServer }) => mysqlServer.admin('SET GLOBAL read_only = ON'), end: ({ mysqlServer }) => mysqlServer.admin('SET GLOBAL read_only = OFF') },
  { name: 'way to MySQL cut', begin: async ({ ways }) => ways.mysql.cut() },
  { name: 'way to MySQL slow', begin: async ({ ways }) => ways.mysql.delay(50), end: async ({ ways }) => ways.mysql.delay(0) },
  { name: 'way to MySQL hangs', begin: ({ ways }) => ways.mysql.become('hang'), end: ({ ways }) => ways.mysql.become('pass') },
  { name: 'node killed', begin: (world, chance) => world.replace(victim(world, chance), 'SIGKILL') },
  { name: 'node restarted by SIGTERM', begin: restart },
  { name: 'hashing threads exchanged', begin: exchangeThreads },
  { name: 'no subscriber', begin: async ({ consumer }) => consumer.leave(), end: ({ consumer }) => consumer.comeBack() },
];
