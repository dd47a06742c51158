import { subjectOf } from '../keyring.js';
import { insertAccounts, type NewAccount } from '../store/accounts.js';
import { record } from '../store/audit.js';
import { appendEvents } from '../store/outbox.js';
import type { Toolbox } from './toolbox.js';

/**
 * Adds accounts, with an audit entry and an event for each, in one transaction. Gives, by position, the new id or null
 * where the address was taken already.
 */
export function addAccounts({ mysql, keyring }: Pick<Toolbox, 'mysql' | 'keyring'>, by: 'operator' | 'import', accounts: NewAccount[]): Promise<(string | null)[]> {
  const action = by === 'import' ? 'account.imported' : 'account.created';
  return insertAccounts(mysql(), accounts, async (tx, added) => {
    const [{ now }] = await tx.rows<{ now: Date }>('SELECT UTC_TIMESTAMP(3) AS now') as [{ now: Date }];
    await record(tx, ...added.map(({ id }) => ({ userId: id, subject: subjectOf(keyring, id), action, status: 'success', ip: null }) as const));
    await appendEvents(tx, 'identity.user.created', added.map(({ id, email }) => ({ userId: id, email, by })), now);
  });
}
