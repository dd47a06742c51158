import type { Deps } from '../deps.js';
import type { Call } from '../http/call.js';
import { subjectOf } from '../keyring.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { record, whence } from '../store/audit.js';
import { findOwner } from '../store/deletions.js';
import { countFactors } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { appendEvent } from '../store/outbox.js';

/** What may happen to the second factors of an account: as the audit, other services and the owner are told of it. */
const NEWS = {
  enabled: { action: 'mfa.enabled', event: 'identity.mfa.enabled', template: 'mfa_enabled' },
  disabled: { action: 'mfa.disabled', event: 'identity.mfa.disabled', template: 'mfa_disabled' },
  recoveryCodesReplaced: { action: 'mfa.recovery_codes_replaced', event: 'identity.mfa.recovery_codes_replaced', template: 'mfa_recovery_codes_replaced' },
  recoveryCodeUsed: { action: 'mfa.recovery_code_used', event: 'identity.mfa.recovery_code_used', template: 'mfa_recovery_code_used' },
} as const;

export type NewsNeeds = Pick<Deps, 'keyring' | 'clock' | 'events' | 'notify'>;

/** Tells of a change in its transaction, which holds the account's row; `wake` once it is committed. */
export async function announce(tx: Tx, { keyring, clock }: NewsNeeds, call: Pick<Call, 'ip' | 'place' | 'principal'>, userId: string, news: keyof typeof NEWS): Promise<void> {
  const { action, event, template } = NEWS[news];
  const now = new Date(clock.now());
  const counts = await countFactors(tx, userId);
  await record(tx, { userId, subject: subjectOf(keyring, userId), action, status: 'success', ...whence(call), detail: counts });
  await appendEvent(tx, event, { userId, ...counts }, now);
  const owner = await findOwner(tx, userId);
  if (owner) await tell(tx, { keyring }, owner, verifiedContacts(owner), template, { at: now.toISOString(), ipAddress: call.ip, recoveryCodes: counts.recoveryCodes });
}

/** Has what was announced go out. */
export function wake({ events, notify }: NewsNeeds): void {
  events.wake();
  notify.wake();
}
