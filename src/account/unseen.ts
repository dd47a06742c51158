import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import type { LimitName } from '../limits.js';
import { demandRedis } from '../store/redis.js';

export type UnseenNeeds = Pick<Deps, 'redis' | 'mysql' | 'limits' | 'errands'>;

/**
 * Asks both stores whether they are there: what is done after the reply could not tell.
 * @throws ApiError UNAVAILABLE, whatever the address
 */
export async function demandStores({ redis, mysql }: Pick<Deps, 'redis' | 'mysql'>): Promise<void> {
  await Promise.all([demandRedis(redis, 'every'), mysql.rows('SELECT 1')]);
}

/**
 * Does what a request calls for after its reply, which so tells nothing about the address, by its time either.
 * Beyond `limit`, which counts by address, nothing is done: nobody's mailbox can be flooded from many networks.
 * @throws ApiError UNAVAILABLE
 */
export async function doUnseen({ limits, errands }: UnseenNeeds, limit: LimitName, email: string, work: () => Promise<void>): Promise<void> {
  try {
    await limits.hit(limit, email);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'RATE_LIMITED') return;
    throw error;
  }
  errands.add(work);
}
