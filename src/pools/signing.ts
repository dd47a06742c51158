import { ApiError } from '../errors.js';
import type { Log } from '../log.js';
import type { SigningJob } from '../../workers/protocol.js';
import { startThreads } from './threads.js';

const WORKER = new URL('../../workers/signing.js', import.meta.url);

export interface Signing {
  /**
   * The compact form of a signed token.
   * @throws ApiError UNAVAILABLE when its thread died
   */
  sign(job: SigningJob): Promise<string>;
  close(): Promise<void>;
}

/** One thread of its own, at normal priority: signing never waits for a hash. */
export function createSigning(log: Log): Signing {
  const threads = startThreads<SigningJob | null, string>({ worker: WORKER, threads: 1, concurrency: 32, nice: 0, setup: null, probe: null, memory: 0, log });
  return {
    async sign(job) {
      try {
        return await threads.run(job);
      } catch (error) {
        throw new ApiError('UNAVAILABLE', { retryAfter: 1 }, { cause: error });
      }
    },
    close: () => threads.close(),
  };
}
