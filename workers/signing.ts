import { signJws } from './jws.js';
import type { SigningJob } from './protocol.js';

/** Signs one access token; a null asks whether the thread is up. */
export default function run(job: SigningJob | null): string {
  return job === null ? '' : signJws(job);
}
