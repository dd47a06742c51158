import { v4 as uuid } from 'uuid';
import type { Queryable, Tx } from './mysql.js';

export async function insertMfaToken(tx: Tx, hash: Buffer, userId: string, lifeMs: number): Promise<void> {
  await tx.run('INSERT INTO mfa_tokens (token_hash, user_id, expires_at) VALUES (?, ?, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)', [hash, userId, lifeMs * 1000]);
}

/** The user of a token that is neither used nor expired. */
export async function findMfaToken(on: Queryable, hash: Buffer): Promise<{ userId: string } | null> {
  const [row] = await on.rows<{ userId: string }>('SELECT user_id AS userId FROM mfa_tokens WHERE token_hash = ? AND expires_at > UTC_TIMESTAMP(3)', [hash]);
  return row ?? null;
}

/** Uses a token up; of several callers one gets true. */
export async function spendMfaToken(tx: Tx, hash: Buffer): Promise<boolean> {
  const { affected } = await tx.run('DELETE FROM mfa_tokens WHERE token_hash = ? AND expires_at > UTC_TIMESTAMP(3)', [hash]);
  return affected === 1;
}

export async function deleteMfaTokens(tx: Tx, userId: string): Promise<void> {
  await tx.run('DELETE FROM mfa_tokens WHERE user_id = ?', [userId]);
}

export interface TotpFactor {
  id: string;
  /** Sealed with the factor's id as context. */
  secret: Buffer;
  lastStep: number | null;
}

export async function findTotp(on: Queryable, userId: string): Promise<TotpFactor | null> {
  const [row] = await on.rows<TotpFactor>("SELECT id, secret, last_step AS lastStep FROM mfa_factors WHERE user_id = ? AND method = 'totp' AND verified_at IS NOT NULL", [userId]);
  return row ?? null;
}

/** Uses a TOTP step up: no code of that step or an earlier one counts again (RFC 6238 §5.2). */
export async function spendTotpStep(tx: Tx, factorId: string, step: number): Promise<boolean> {
  const { affected } = await tx.run('UPDATE mfa_factors SET last_step = ? WHERE id = ? AND (last_step IS NULL OR last_step < ?)', [step, factorId, step]);
  return affected === 1;
}

/** Uses a recovery code up; of several callers one gets true. */
export async function spendRecoveryCode(tx: Tx, userId: string, hashes: Buffer[]): Promise<boolean> {
  for (const hash of hashes) {
    const { affected } = await tx.run('UPDATE mfa_recovery_codes SET used_at = UTC_TIMESTAMP(3) WHERE user_id = ? AND code_hash = ? AND used_at IS NULL', [userId, hash]);
    if (affected === 1) return true;
  }
  return false;
}

export async function insertFactor(tx: Tx, factor: { id: string; userId: string; method: 'totp' | 'recovery_code'; secret: Buffer | null; verified: boolean }): Promise<void> {
  await tx.run(`INSERT INTO mfa_factors (id, user_id, method, secret, verified_at) VALUES (?, ?, ?, ?, ${factor.verified ? 'UTC_TIMESTAMP(3)' : 'NULL'})`, [factor.id, factor.userId, factor.method, factor.secret]);
}

export async function insertRecoveryCodes(tx: Tx, userId: string, hashes: Buffer[]): Promise<void> {
  await insertFactor(tx, { id: uuid(), userId, method: 'recovery_code', secret: null, verified: true });
  for (const hash of hashes) await tx.run('INSERT INTO mfa_recovery_codes (user_id, code_hash) VALUES (?, ?)', [userId, hash]);
}
