/** What the main thread asks of the hashing threads. Errors lose their class on the way back, so results are unions. */
export type Engine = 'node-rs' | 'reference';

export interface HashCost {
  memoryKib: number;
  passes: number;
}

/** Set once per pool. */
export interface HashingSetup {
  engine: Engine | 'auto';
  cost: HashCost;
}

export type HashingJob =
  | { kind: 'hash'; plain: string }
  /** `hash` null: an unknown account, which costs the same. `token`: what to sign when the password is right. */
  | { kind: 'verify'; hash: string | null; plain: string; token: SigningJob | null };

export type HashingResult =
  | { kind: 'hash'; hash: string }
  /** `renewed`: a new hash of the right password when the stored one is cheaper than the setting. */
  | { kind: 'verify'; ok: boolean; renewed: string | null; token: string | null }
  | { kind: 'failed'; reason: string };

export interface SigningJob {
  alg: 'ES256' | 'EdDSA' | 'RS256';
  kid: string;
  /** PKCS #8, PEM. */
  privateKey: string;
  claims: Record<string, unknown>;
}
