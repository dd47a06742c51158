import { record } from '../store/audit.js';
import { holdAccounts, type LoginAccount } from '../store/login-accounts.js';
import { insertMfaToken, type NewMfaToken } from '../store/mfa.js';
import { auditOf, type Attempt, type AttemptNeeds } from './attempt.js';
import type { Ticket } from './gate.js';
import { MFA_TOKEN_MS, newMfaToken } from './mfa-token.js';

/** What a client needs to finish a login with its second factor. */
export interface Challenge {
  mfaToken: string;
  methods: LoginAccount['factors'];
  /** In seconds. */
  expiresIn: number;
}

/**
 * A second factor is due: no session yet, and the gate's counts stay.
 * @returns null when the account changed while the first factor was checked: it must be checked anew
 */
export async function challenge(
  { mysql, keyring, gate, metrics }: Pick<AttemptNeeds, 'mysql' | 'keyring' | 'gate' | 'metrics'>,
  attempt: Attempt & { account: LoginAccount },
  ticket: Ticket,
  before: Pick<NewMfaToken, 'firstFactor' | 'device'>,
): Promise<Challenge | null> {
  const { account } = attempt;
  const token = newMfaToken();
  const stored = await mysql.transaction(async (tx) => {
    const [held] = await holdAccounts(tx, [account]);
    if (!held) return false;
    await insertMfaToken(tx, { hash: token.hash, userId: account.id, ...before, lifeMs: MFA_TOKEN_MS });
    await record(tx, { ...auditOf(keyring, attempt), status: 'success', detail: { outcome: 'mfa_required' } });
    return true;
  });
  if (!stored) return null;
  await gate.release(ticket);
  metrics.logins.inc({ outcome: 'mfa_required' });
  return { mfaToken: token.text, methods: account.factors, expiresIn: MFA_TOKEN_MS / 1000 };
}
