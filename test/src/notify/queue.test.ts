import t from 'tap';
import { enqueue, forgetNotifications } from '../../../src/notify/queue.js';
import { deleteSettled } from '../../../src/store/notifications.js';
import { CODE, codeMail, notifyNeeds, queue, rows } from '../../support/notify.js';

t.test('neither the code nor another value stands in the database in the clear', async (t) => {
  const { needs } = await notifyNeeds(t);
  await queue(needs, codeMail());
  const [row] = await rows(needs);
  for (const [column, value] of Object.entries(row!)) {
    const text = Buffer.isBuffer(value) ? value.toString('latin1') : value instanceof Date ? value.toISOString() : String(value);
    for (const secret of [CODE, 'Ada', 'gracePeriodDays', Buffer.from(CODE).toString('base64').slice(0, 8), Buffer.from(CODE).toString('hex')]) {
      t.notOk(text.includes(secret), `${column} does not hold ${secret}`);
    }
  }
  t.match(row, { recipient: 'ada@example.com', attempts: 0, sent_at: null, failed_at: null });
});

t.test('a payload cannot be moved to another message', async (t) => {
  const { needs } = await notifyNeeds(t);
  await queue(needs, codeMail());
  const [row] = await rows(needs);
  t.ok(needs.keyring.open('notification', row!.payload!, row!.id));
  t.equal(needs.keyring.open('notification', row!.payload!, '0199aaaa-0000-7000-8000-000000000002'), null);
});

t.test('a message of a change that is rolled back is never there', async (t) => {
  const { needs } = await notifyNeeds(t);
  const change = needs.mysql.transaction(async (tx) => {
    await enqueue(tx, needs, codeMail());
    throw new Error('no');
  });
  await t.rejects(change, { message: 'no' });
  t.same(await rows(needs), []);
});

t.test('a tenant that can have no templates is none', async (t) => {
  const { needs } = await notifyNeeds(t);
  for (const tenant of ['acme.example', '../x', 'x'.repeat(65), 'ü', '']) await queue(needs, codeMail({ tenant }));
  t.same((await rows(needs)).map((row) => row.tenant), ['acme.example', null, null, null, null]);
});

t.test('forgetting an account leaves no message of it and all of others', async (t) => {
  const { needs } = await notifyNeeds(t);
  await queue(needs, codeMail());
  await queue(needs, codeMail({ channel: 'SMS', to: '+4915112345' }));
  await queue(needs, codeMail({ userId: '0199aaaa-0000-7000-8000-00000000000b', to: 'bob@example.com' }));
  await needs.mysql.transaction((tx) => forgetNotifications(tx, codeMail().userId!));
  t.match(await rows(needs), [{ recipient: 'bob@example.com' }]);
});

t.test('rows that are done with go after some days, others stay', async (t) => {
  const { needs } = await notifyNeeds(t);
  for (const to of ['old-sent', 'old-waiting', 'new-sent']) await queue(needs, codeMail({ to }));
  await needs.mysql.run("UPDATE notification_outbox SET next_attempt_at = NULL, sent_at = UTC_TIMESTAMP(3) WHERE recipient LIKE '%-sent'");
  await needs.mysql.run("UPDATE notification_outbox SET created_at = UTC_TIMESTAMP(3) - INTERVAL 8 DAY WHERE recipient LIKE 'old-%'");
  t.equal(await deleteSettled(needs.mysql, 7), 1);
  t.same((await rows(needs)).map((row) => row.recipient), ['old-waiting', 'new-sent']);
});
