import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { json } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { demandRedis } from '../store/redis.js';

/** Whether the process should get traffic. */
export interface Readiness {
  check(): Promise<boolean>;
  /** From now on the answer is no: the process is going. */
  leave(): void;
}

export function createReadiness({ mysql, redis }: Pick<Deps, 'mysql' | 'redis'>): Readiness {
  let leaving = false;
  let asking: Promise<boolean> | null = null;
  const ask = (): Promise<boolean> =>
    Promise.all([mysql.rows('SELECT 1'), demandRedis(redis, 'any')]).then(
      () => true,
      () => false,
    );
  return {
    async check() {
      // Probes that come together share an answer; none gets one from before it asked.
      asking ??= ask().finally(() => {
        asking = null;
      });
      return (await asking) && !leaving;
    },
    leave: () => (leaving = true),
  };
}

/** GET /health/live: the process answers. */
export const live = endpoint({
  tag: 'Operations',
  summary: 'Whether the process answers',
  replies: { 200: Type.Object({ status: Type.Literal('live') }, { description: 'It does.' }) },
  errors: [],
  handle: () => Promise.resolve(json(200, { status: 'live' })),
});

/** GET /health/ready: 200 while both stores answer and the process is not going, else 503. */
export const ready = endpoint({
  tag: 'Operations',
  summary: 'Whether the process should get traffic',
  replies: {
    200: Type.Object({ status: Type.Literal('ready') }, { description: 'Both stores answer.' }),
    503: Type.Object({ status: Type.Literal('unavailable') }, { description: 'A store is down, or the process is going.' }),
  },
  errors: [],
  handle: async ({ readiness }: { readiness: Readiness }) => ((await readiness.check()) ? json(200, { status: 'ready' }) : json(503, { status: 'unavailable' })),
});
