import { signJws } from './jws.js';
import type { SigningJob } from './protocol.js';

/** Signs one access token. */
export default function run(job: SigningJob): string {
  return signJws(job);
}
