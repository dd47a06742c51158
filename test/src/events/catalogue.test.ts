import { Ajv } from 'ajv';
import t from 'tap';
import { EVENT_TYPES, messageSchema, type EventFields, type EventType } from '../../../src/events/catalogue.js';
import { appendEvent } from '../../../src/store/outbox.js';
import { ANN, openNode, openStores } from './node.js';

const at = new Date('2026-01-31T08:00:00.123Z');
const samples: { [T in EventType]: EventFields<T> } = {
  'identity.user.registered': { userId: ANN, email: 'ann@example.com', provider: 'google' },
  'identity.user.pre_deletion_validate': { userId: ANN, email: 'ann@example.com', validationId: ANN, replyTo: 'idp:{x}:answers', deadline: at.toISOString() },
  'identity.user.deleted': { userId: ANN, email: 'ann@example.com', gracePeriodDays: 30, permanentDeletionAt: at.toISOString() },
  'identity.user.restored': { userId: ANN, email: 'ann@example.com', originalDeletionAt: at.toISOString() },
  'identity.user.permanently_deleted': { userId: ANN, email: 'ann@example.com', originalDeletionAt: at.toISOString(), daysInDeletedState: 30 },
  'identity.user.email_verified': { userId: ANN, email: 'ann@example.com' },
  'identity.user.password_changed': { userId: ANN, email: 'ann@example.com', by: 'reset' },
  'identity.mfa.enabled': { userId: ANN, factors: 2, recoveryCodes: 10 },
  'identity.mfa.disabled': { userId: ANN, factors: 0, recoveryCodes: 0 },
  'identity.mfa.recovery_codes_replaced': { userId: ANN, factors: 2, recoveryCodes: 10 },
  'identity.mfa.recovery_code_used': { userId: ANN, factors: 2, recoveryCodes: 9 },
  'identity.session.reuse_detected': { userId: ANN, sessionId: ANN },
  'identity.user.created': { userId: ANN, email: 'ann@example.com', by: 'import' },
  'identity.user.risk_detected': { userId: ANN, sessionId: ANN, risks: ['new_network', 'new_country'], ipAddress: '192.0.2.1', country: 'DE' },
};

const ajv = new Ajv({ formats: { uuid: /^[0-9a-f-]{36}$/, 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });

t.test('every message is flat and as its schema says', async (t) => {
  const node = await openNode(t, await openStores(t));
  for (const type of EVENT_TYPES) {
    const id = await node.mysql.transaction((tx) => appendEvent(tx, type, samples[type], at));
    const [row] = await node.mysql.rows<{ message: string }>('SELECT message FROM event_outbox WHERE id = ?', [id]);
    const message = JSON.parse(row!.message) as unknown;
    t.same(message, { id, type, time: at.toISOString(), ...samples[type] });
    t.ok(ajv.validate(messageSchema(type), message), ajv.errorsText());
  }
});

/** Fields that a message may lack. */
const OPTIONAL: Partial<Record<EventType, string[]>> = { 'identity.user.registered': ['provider'] };

t.test('every schema demands every field and describes it', (t) => {
  for (const type of EVENT_TYPES) {
    const schema = messageSchema(type);
    t.same(schema.required, Object.keys(schema.properties).filter((name) => !OPTIONAL[type]?.includes(name)));
    t.ok(schema.description, type);
    for (const [name, field] of Object.entries(schema.properties)) t.ok(name === 'type' || field.description, `${type} ${name}`);
    t.notOk(ajv.validate(schema, { id: ANN, type, time: at.toISOString() }));
  }
  t.end();
});
