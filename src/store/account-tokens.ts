import type { Queryable, Tx } from './mysql.js';

/** What a token is for. It is good for nothing else. */
export type TokenPurpose = 'verify_email' | 'reset_password';

/** Makes a token the only good one of its purpose, for the address that the account has now. */
export async function replaceToken(tx: Tx, token: { hash: Buffer; userId: string; purpose: TokenPurpose; lifeMs: number }): Promise<void> {
  await tx.run(
    `REPLACE INTO account_tokens (user_id, purpose, token_hash, address_hash, expires_at)
     SELECT id, ?, ?, UNHEX(SHA2(email, 256)), UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND FROM users WHERE id = ?`,
    [token.purpose, token.hash, Math.round(token.lifeMs * 1000), token.userId],
  );
}

/** A token is good until it expires, for the account and the address it was mailed to, while that account is active. */
const GOOD = `t.token_hash = ? AND t.purpose = ? AND t.expires_at > UTC_TIMESTAMP(3)
  AND t.address_hash = UNHEX(SHA2(u.email, 256)) AND u.status = 'active' AND u.deleted_at IS NULL`;

/** Whose token it is; null when it is not good. */
export async function findToken(on: Queryable, hash: Buffer, purpose: TokenPurpose): Promise<{ userId: string; email: string } | null> {
  const [row] = await on.rows<{ userId: string; email: string }>(`SELECT u.id AS userId, u.email FROM account_tokens t JOIN users u ON u.id = t.user_id WHERE ${GOOD}`, [hash, purpose]);
  return row ?? null;
}

/** Uses a token up; of several callers one gets true. Everything the decision depends on stands in the statement. */
export async function spendToken(tx: Tx, hash: Buffer, purpose: TokenPurpose): Promise<boolean> {
  const { affected } = await tx.run(`DELETE t FROM account_tokens t JOIN users u ON u.id = t.user_id WHERE ${GOOD}`, [hash, purpose]);
  return affected === 1;
}

export async function deleteTokens(tx: Tx, userId: string): Promise<void> {
  await tx.run('DELETE FROM account_tokens WHERE user_id = ?', [userId]);
}

export async function deleteTokensFor(tx: Tx, userId: string, purpose: TokenPurpose): Promise<void> {
  await tx.run('DELETE FROM account_tokens WHERE user_id = ? AND purpose = ?', [userId, purpose]);
}
