import { v7 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import type { Tx } from '../store/mysql.js';
import { deleteNotificationsOf, insertNotification } from '../store/notifications.js';
import { isTenantName, type Channel, type TemplateName, type TemplateValues, type Values } from './templates.js';

/** A message to one person on one channel. */
export interface Message<T extends TemplateName> {
  userId: string | null;
  /** null: the templates of DEFAULT_COMMS_TENANT_ID. */
  tenant: string | null;
  template: T;
  channel: Channel;
  /** One e-mail address, or one phone number. */
  to: string;
  /** `otp` is the code; a message with `expiresAt` is not sent after that time. */
  data: TemplateValues<T>;
}

/** Writes a message in the transaction of what it tells of; wake the sender after the commit. */
export async function enqueue<T extends TemplateName>(tx: Tx, needs: Pick<Deps, 'keyring'>, message: Message<T>): Promise<void> {
  const id = uuid();
  await insertNotification(tx, {
    id,
    userId: message.userId,
    // A name that can have no templates falls back like one that has none.
    tenant: message.tenant !== null && isTenantName(message.tenant) ? message.tenant : null,
    template: message.template,
    channel: message.channel,
    recipient: message.to,
    payload: needs.keyring.seal('notification', Buffer.from(JSON.stringify(message.data)), id),
  });
}

/** The values of a queued message, or null when they were sealed under a secret that is not accepted any more. */
export function openPayload(keyring: Deps['keyring'], id: string, payload: Buffer): Values | null {
  const plain = keyring.open('notification', payload, id);
  return plain === null ? null : (JSON.parse(plain.toString()) as Values);
}

/** Deletes what is queued or left of an account's messages. */
export const forgetNotifications = (tx: Tx, userId: string): Promise<void> => deleteNotificationsOf(tx, userId);
