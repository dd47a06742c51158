import type { Deps } from '../deps.js';
import type { Call } from '../http/call.js';
import { tell, verifiedContacts } from '../notify/notices.js';
import { findOwner } from '../store/deletions.js';
import type { Tx } from '../store/mysql.js';
import { countOfDay } from '../store/notifications.js';

const TEMPLATE = 'account_locked';

/** Locks in 24 hours that an owner hears of, on each channel: a stranger who locks the account all day must not fill a mailbox. */
const MOST_A_DAY = 3;

/**
 * Tells the owner that the account is locked for `ms` from now, and by guesses at what, in the transaction that wrote the lock. Nobody wakes
 * the sender: it finds the message when it looks next, and what it does then follows no reply.
 */
export async function tellOfLock(tx: Tx, { keyring, clock }: Pick<Deps, 'keyring' | 'clock'>, { ip }: Pick<Call, 'ip'>, userId: string, { ms, guessed }: { ms: number; guessed: 'password' | 'code' }): Promise<void> {
  const owner = await findOwner(tx, userId);
  if (owner?.status !== 'active' || owner.deletedAt !== null) return;
  const told = await countOfDay(tx, userId, TEMPLATE);
  const contacts = verifiedContacts(owner).filter(({ channel }) => (told.get(channel) ?? 0) < MOST_A_DAY);
  const now = clock.now();
  await tell(tx, { keyring }, owner, contacts, TEMPLATE, { at: new Date(now).toISOString(), ipAddress: ip, lockedUntil: new Date(now + ms).toISOString(), guessed });
}
