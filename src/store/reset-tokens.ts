import type { Tx } from './mysql.js';

export async function deleteResetTokens(tx: Tx, userId: string): Promise<void> {
  await tx.run('DELETE FROM password_reset_tokens WHERE user_id = ?', [userId]);
}
