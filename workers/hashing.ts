import { verifySync as verifyBcrypt } from '@node-rs/bcrypt';
import { workerData } from 'node:worker_threads';
import { loadArgon2, type Argon2 } from './argon2.js';
import { signJws } from './jws.js';
import { isOutdated, readPhc } from './phc.js';
import type { HashingJob, HashingResult, HashingSetup } from './protocol.js';

const { engine, cost } = workerData as HashingSetup;
// No await at the top level: Node 20 ends the whole process when a thread is ended that stands at one.
const tools = prepare();

interface Tools {
  argon2: Argon2;
  /** The hash of no password. */
  decoy: string;
}

async function prepare(): Promise<Tools> {
  const argon2 = await loadArgon2(engine);
  return { argon2, decoy: await argon2.hash('no password has this hash', cost) };
}

/** Works on a few jobs one after the other: what each costs beside its hash is paid once. */
export default async function run(jobs: HashingJob[]): Promise<HashingResult[]> {
  const ready = await tools;
  const results: HashingResult[] = [];
  for (const job of jobs) results.push(await work(ready, job).catch((error: unknown) => ({ kind: 'failed' as const, reason: String(error) })));
  // After the last hash, each of which leaves the caches of its core empty: what signs is read into them once.
  return results.map((result, i) => sign(jobs[i]!, result));
}

function sign(job: HashingJob, result: HashingResult): HashingResult {
  if (result.kind !== 'verify' || !result.ok || job.kind !== 'verify' || !job.token) return result;
  try {
    return { ...result, token: signJws(job.token) };
  } catch (error) {
    return { kind: 'failed', reason: String(error) };
  }
}

/** Verifies or hashes one password. An unknown or unusable hash costs as much as a real one and is never right. */
async function work(ready: Tools, job: HashingJob): Promise<HashingResult> {
  const { argon2, decoy } = ready;
  if (job.kind === 'hash') return { kind: 'hash', hash: await argon2.hash(job.plain, cost) };
  const phc = job.hash === null ? null : readPhc(job.hash);
  const matches = phc === null ? (await argon2.verify(decoy, job.plain), false) : await verify(ready, job.hash!, job.plain, phc.scheme);
  const renewed = matches && isOutdated(phc!, cost) ? await argon2.hash(job.plain, cost) : null;
  return { kind: 'verify', ok: matches, renewed, token: null };
}

async function verify({ argon2, decoy }: Tools, hash: string, plain: string, scheme: 'argon2' | 'bcrypt'): Promise<boolean> {
  try {
    if (scheme === 'argon2') return await argon2.verify(hash, plain);
    const right = verifyBcrypt(plain, hash);
    return right && isWholeForBcrypt(plain);
  } catch {
    // Well-formed and yet of no use. If the decoy fails too, the engine is at fault and the job fails, not the guess.
    await argon2.verify(decoy, plain);
    return false;
  }
}

/** bcrypt ends a password at its 72nd byte and at a NUL: what stands behind would be accepted whatever it says. */
const isWholeForBcrypt = (plain: string): boolean => Buffer.byteLength(plain) <= 72 && !plain.includes('\0');
