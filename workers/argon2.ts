import type { Engine, HashCost } from './protocol.js';

/** One way to compute argon2id. PHC strings of all engines are interchangeable. */
export interface Argon2 {
  readonly engine: Engine;
  hash(plain: string, cost: HashCost): Promise<string>;
  verify(hash: string, plain: string): Promise<boolean>;
}

async function nodeRs(): Promise<Argon2> {
  const { hashSync, verifySync } = await import('@node-rs/argon2');
  return {
    engine: 'node-rs',
    // Synchronous: the work stays on this thread, whose priority is lower than the front end's. argon2id is the default.
    hash: (plain, { memoryKib, passes }) => Promise.resolve(hashSync(plain, { memoryCost: memoryKib, timeCost: passes, parallelism: 1 })),
    verify: (hash, plain) => Promise.resolve(verifySync(hash, plain)),
  };
}

async function reference(): Promise<Argon2> {
  const argon2 = (await import('argon2')).default;
  return {
    engine: 'reference',
    hash: (plain, { memoryKib, passes }) => argon2.hash(plain, { type: argon2.argon2id, memoryCost: memoryKib, timeCost: passes, parallelism: 1 }),
    verify: (hash, plain) => argon2.verify(hash, plain),
  };
}

/** Loads an engine; `auto` is the SIMD engine where its binary loads and the reference elsewhere. */
export async function loadArgon2(engine: Engine | 'auto'): Promise<Argon2> {
  if (engine === 'reference') return reference();
  try {
    return await nodeRs();
  } catch (error) {
    if (engine === 'node-rs') throw error;
    return reference();
  }
}
