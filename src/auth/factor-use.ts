import type { Deps } from '../deps.js';
import { findTotp, spendRecoveryCode, spendTotpStep, type Method } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { recoveryCodeHashes, totpStep } from './factors.js';

/** Uses a code up; false when it is wrong, or was used before. Of several callers with one code one gets true. */
export async function spendCode(tx: Tx, { keyring, clock }: Pick<Deps, 'keyring' | 'clock'>, userId: string, method: Method, code: string): Promise<boolean> {
  if (method === 'recovery_code') return spendRecoveryCode(tx, userId, recoveryCodeHashes(keyring, userId, code));
  const factor = await findTotp(tx, userId);
  const step = factor && totpStep(keyring, factor, code, clock.now());
  return factor !== null && step !== null && (await spendTotpStep(tx, factor.id, step));
}

/** What kind of code a text is: an app shows six digits, recovery codes are longer. */
export const methodOf = (code: string): Method => (/^\d{6}$/.test(code) ? 'totp' : 'recovery_code');
