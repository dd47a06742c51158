import { ApiError } from '../errors.js';
import type { Log } from '../log.js';
import type { SigningJob } from '../../workers/protocol.js';
import { gather } from '../store/gather.js';
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

/** Tokens that the thread gets at a time, and such messages under way: one is signed while the next fills. */
const MOST_TOGETHER = 16;
const LANES = 2;

/** One thread of its own, at normal priority: signing never waits for a hash. */
export function createSigning(log: Log): Signing {
  const threads = startThreads<SigningJob[], string[]>({ worker: WORKER, threads: 1, concurrency: LANES, nice: 0, setup: null, probe: [], memory: 0, log });
  const together = gather((jobs: SigningJob[]) => threads.run(jobs), { most: MOST_TOGETHER, lanes: LANES });
  return {
    async sign(job) {
      try {
        return await together(job);
      } catch (error) {
        throw new ApiError('UNAVAILABLE', { retryAfter: 1 }, { cause: error });
      }
    },
    close: () => threads.close(),
  };
}
