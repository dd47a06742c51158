import type { Deps } from '../deps.js';
import type { Owner } from '../store/deletions.js';
import type { Tx } from '../store/mysql.js';
import { enqueue } from './queue.js';
import type { Channel, TemplateName, TemplateValues } from './templates.js';

/** One way to reach an owner. */
export interface Contact {
  channel: Channel;
  to: string;
}

/** The address and the number that are proven to be the owner's. */
export const verifiedContacts = ({ email, emailVerified, phone, phoneVerified }: Owner): Contact[] => [
  ...(emailVerified ? [{ channel: 'EMAIL' as const, to: email }] : []),
  ...(phoneVerified && phone !== null ? [{ channel: 'WHATSAPP' as const, to: phone }] : []),
];

/**
 * Queues a message to the owner on each contact, in the transaction of what it tells of. A name goes only where the
 * address is proven: else whoever signs a stranger's address up would have us write to them whatever a name can hold.
 */
export async function tell<T extends TemplateName>(tx: Tx, needs: Pick<Deps, 'keyring'>, owner: Owner, contacts: Contact[], template: T, data: TemplateValues<T>): Promise<void> {
  const named = owner.name === null || !owner.emailVerified ? data : { ...data, name: owner.name };
  for (const contact of contacts) await enqueue(tx, needs, { userId: owner.id, tenant: owner.tenant, template, ...contact, data: named });
}
