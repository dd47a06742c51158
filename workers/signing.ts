import { signJws } from './jws.js';
import type { SigningJob } from './protocol.js';

/** Signs access tokens, several at a time, since a message to a thread costs as much as a signature; none asks whether the thread is up. */
export default function run(jobs: SigningJob[]): string[] {
  return jobs.map(signJws);
}
