import { v4 as uuid } from 'uuid';
import { tuples, type Queryable, type Tx } from './mysql.js';

/** What a login proved before its second factor, as `amr` says it: a password, or a sign-in at another provider. */
export type FirstFactor = 'pwd' | 'fed';

/** A login whose first factor was right and whose second is awaited; `device` is the name that the client gave it. */
export interface NewMfaToken {
  hash: Buffer;
  userId: string;
  firstFactor: FirstFactor;
  device: string | null;
  lifeMs: number;
}

export async function insertMfaToken(tx: Tx, { hash, userId, firstFactor, device, lifeMs }: NewMfaToken): Promise<void> {
  await tx.run('INSERT INTO mfa_tokens (token_hash, user_id, first_factor, device, expires_at) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)', [hash, userId, firstFactor, device, lifeMs * 1000]);
}

/** What a token that is neither used nor expired stands for. */
export async function findMfaToken(on: Queryable, hash: Buffer): Promise<Pick<NewMfaToken, 'userId' | 'firstFactor' | 'device'> | null> {
  const [row] = await on.rows<Pick<NewMfaToken, 'userId' | 'firstFactor' | 'device'>>('SELECT user_id AS userId, first_factor AS firstFactor, device FROM mfa_tokens WHERE token_hash = ? AND expires_at > UTC_TIMESTAMP(3)', [hash]);
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
}

/** The authenticator app that an account has set up. */
export async function findTotp(on: Queryable, userId: string): Promise<TotpFactor | null> {
  const [row] = await on.rows<TotpFactor>("SELECT id, secret FROM mfa_factors WHERE user_id = ? AND method = 'totp' AND verified_at IS NOT NULL", [userId]);
  return row ?? null;
}

/** The enrolment of an authenticator app that waits for its first code and is younger than `lifeMs`. */
export async function findPendingTotp(on: Queryable, userId: string, lifeMs: number): Promise<TotpFactor | null> {
  const [row] = await on.rows<TotpFactor>(
    "SELECT id, secret FROM mfa_factors WHERE user_id = ? AND method = 'totp' AND verified_at IS NULL AND created_at > UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND",
    [userId, lifeMs * 1000],
  );
  return row ?? null;
}

/** Stores an enrolment in place of the one that waits; the caller holds the account's row, and no app is set up. */
export async function putPendingTotp(tx: Tx, factor: { id: string; userId: string; secret: Buffer }): Promise<void> {
  await tx.run("DELETE FROM mfa_factors WHERE user_id = ? AND method = 'totp' AND verified_at IS NULL", [factor.userId]);
  await insertFactor(tx, { ...factor, method: 'totp', verified: false });
}

/** Makes a factor of an enrolment; the step of its first code counts as used. Of several callers one gets true. */
export async function confirmTotp(tx: Tx, factorId: string, step: number): Promise<boolean> {
  const { affected } = await tx.run('UPDATE mfa_factors SET verified_at = UTC_TIMESTAMP(3), last_step = ? WHERE id = ? AND verified_at IS NULL', [step, factorId]);
  return affected === 1;
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

export type Method = 'totp' | 'recovery_code';

export async function insertFactor(tx: Tx, factor: { id: string; userId: string; method: Method; secret: Buffer | null; verified: boolean }): Promise<void> {
  await tx.run(`INSERT INTO mfa_factors (id, user_id, method, secret, verified_at) VALUES (?, ?, ?, ?, ${factor.verified ? 'UTC_TIMESTAMP(3)' : 'NULL'})`, [factor.id, factor.userId, factor.method, factor.secret]);
}

/** Stores recovery codes in place of those there were. */
export async function putRecoveryCodes(tx: Tx, userId: string, hashes: Buffer[]): Promise<void> {
  await tx.run('DELETE FROM mfa_recovery_codes WHERE user_id = ?', [userId]);
  await tx.run("DELETE FROM mfa_factors WHERE user_id = ? AND method = 'recovery_code'", [userId]);
  await insertFactor(tx, { id: uuid(), userId, method: 'recovery_code', secret: null, verified: true });
  const rows = hashes.map((hash) => [userId, hash]);
  await tx.run(`INSERT INTO mfa_recovery_codes (user_id, code_hash) VALUES ${tuples(rows)}`, rows.flat());
}

/** Removes every second factor of an account, and the logins that wait for one. */
export async function deleteFactors(tx: Tx, userId: string): Promise<void> {
  await tx.run('DELETE FROM mfa_factors WHERE user_id = ?', [userId]);
  await tx.run('DELETE FROM mfa_recovery_codes WHERE user_id = ?', [userId]);
  await deleteMfaTokens(tx, userId);
}

export interface Factor {
  method: Method;
  verified: boolean;
  createdAt: Date;
}

/** What an account has set up, or begun to, in the order it came. */
export async function listFactors(on: Queryable, userId: string): Promise<Factor[]> {
  const rows = await on.rows<{ [K in keyof Factor]: unknown }>('SELECT method, verified_at IS NOT NULL AS verified, created_at AS createdAt FROM mfa_factors WHERE user_id = ? ORDER BY created_at, method', [userId]);
  return rows.map((row) => ({ ...(row as unknown as Factor), verified: Boolean(row.verified) }));
}

/** How many factors of an account count, and how many of its recovery codes are unused. */
export async function countFactors(on: Queryable, userId: string): Promise<{ factors: number; recoveryCodes: number }> {
  const [row] = await on.rows<{ factors: unknown; recoveryCodes: unknown }>(
    `SELECT (SELECT COUNT(*) FROM mfa_factors WHERE user_id = ? AND verified_at IS NOT NULL) AS factors,
       (SELECT COUNT(*) FROM mfa_recovery_codes WHERE user_id = ? AND used_at IS NULL) AS recoveryCodes`,
    [userId, userId],
  );
  return { factors: Number(row!.factors), recoveryCodes: Number(row!.recoveryCodes) };
}
