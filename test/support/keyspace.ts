import { Cluster } from 'ioredis';
import type { Redis } from '../../src/store/redis.js';

/** The servers that hold keys: one, or the primaries of a cluster. Commands without a key reach a single one of them. */
const holders = (redis: Redis) => (redis instanceof Cluster ? redis.nodes('master') : [redis]);

/** Every key of all servers, or those of a pattern. */
export const everyKey = async (redis: Redis, pattern = '*'): Promise<string[]> => (await Promise.all(holders(redis).map((server) => server.keys(pattern)))).flat();

/** Takes all that Redis knows from it, on every server. */
export async function flushEvery(redis: Redis): Promise<void> {
  await Promise.all(holders(redis).map((server) => server.flushall()));
}
