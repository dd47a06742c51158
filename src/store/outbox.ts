import { v7 as uuid } from 'uuid';
import type { EventFields, EventType } from '../events/catalogue.js';
import type { Tx } from './mysql.js';

/** Writes an event in the transaction of the change it tells of; the relay publishes it after the commit. */
export async function appendEvent<T extends EventType>(tx: Tx, type: T, fields: EventFields<T>, time: Date): Promise<string> {
  const id = uuid();
  const message = JSON.stringify({ id, type, time: time.toISOString(), ...fields });
  await tx.run('INSERT INTO event_outbox (id, user_id, type, message) VALUES (?, ?, ?, ?)', [id, fields.userId, type, message]);
  return id;
}
