import t from 'tap';
import { startApp } from '../../support/app.js';
import { figure } from '../../support/figures.js';
import { openInbox } from '../../support/inbox.js';
import { everyKey } from '../../support/keyspace.js';
import { signedIn, stored } from '../../support/owner.js';

const inbox = openInbox(t);
const service = await startApp(t, inbox.settings);
const { mysql, redis } = service.app.needs;

t.test('one code goes to the verified address and to the verified WhatsApp number', async (t) => {
  const owner = await signedIn(service, inbox, { phone: '+4915112345678' });
  const answer = await owner.requestDeletion();
  t.equal(answer.status, 204);
  t.equal(answer.text, '');
  const [mail, whatsapp] = [await inbox.nth(owner.email, 'account_deletion_requested'), await inbox.nth('+4915112345678', 'account_deletion_requested')];
  t.match([mail.channel, whatsapp.channel], ['EMAIL', 'WHATSAPP']);
  t.equal(mail.data['otp'], whatsapp.data['otp']);
  t.ok(mail.text.includes(mail.data['otp']!));
  t.equal(mail.tenant, 'global');
  t.equal((await owner.delete(whatsapp.data['otp'])).status, 200);
  t.equal((await inbox.nth('+4915112345678', 'account_deleted')).channel, 'WHATSAPP');
});

t.test('an account without a verified address or number gets nothing, and the same reply', async (t) => {
  const owner = await signedIn(service, inbox, { verified: false, phone: '+4915100000000' });
  t.equal((await owner.requestDeletion()).status, 204);
  t.same(await mysql.rows('SELECT id FROM notification_outbox WHERE user_id = ?', [owner.id]), []);
  t.same((await stored(mysql, owner.id)).audit, []);
});

t.test('a number that is not verified gets no code', async (t) => {
  const owner = await signedIn(service, inbox);
  await mysql.run("UPDATE users SET phone = '+4915111111111', phone_verified_at = NULL WHERE id = ?", [owner.id]);
  await owner.deletionCode();
  t.equal((await mysql.rows('SELECT id FROM notification_outbox WHERE user_id = ?', [owner.id])).length, 1);
});

t.test('the owner is greeted by name, in the words of the only tenant', async (t) => {
  const owner = await signedIn(service, inbox);
  await mysql.run("INSERT INTO profiles (id, user_id, provider, given_name) VALUES (UUID(), ?, 'local', '{{7*7}} <%= 1 %>')", [owner.id]);
  await mysql.run("INSERT INTO tenants (id, name, slug) VALUES ('t1', 'Acme', 'acme'), ('t2', 'Other', 'other')");
  await mysql.run("INSERT INTO user_tenants (user_id, tenant_id) VALUES (?, 't1')", [owner.id]);
  await owner.requestDeletion();
  const mail = await inbox.nth(owner.email, 'account_deletion_requested');
  t.ok(mail.text.startsWith('Hello {{7*7}} <%= 1 %>,'));
  t.equal(mail.tenant, 'acme');
  await mysql.run("INSERT INTO user_tenants (user_id, tenant_id) VALUES (?, 't2')", [owner.id]);
  await owner.requestDeletion();
  t.equal((await inbox.nth(owner.email, 'account_deletion_requested', 2)).tenant, 'global', 'of two tenants none is preferred');
});

t.test('an account is sent ten codes a day; further requests are answered alike and change nothing', async (t) => {
  const owner = await signedIn(service, inbox);
  let last = '';
  for (let i = 0; i < 10; i += 1) last = await owner.deletionCode();
  for (let i = 0; i < 3; i += 1) t.equal((await owner.requestDeletion()).status, 204);
  t.equal((await mysql.rows("SELECT id FROM notification_outbox WHERE user_id = ? AND template = 'account_deletion_requested'", [owner.id])).length, 10);
  t.equal((await owner.delete(last)).status, 200);
});

t.test('no code, address or user id stands in Redis, and every key has a TTL', async (t) => {
  const owner = await signedIn(service, inbox);
  const code = await owner.deletionCode();
  await owner.delete('00000000');
  const keys = (await everyKey(redis)).filter((key) => key !== 'idp:events');
  t.ok(keys.some((key) => key.includes('otp')));
  const plain = keys.filter((key) => key.includes(owner.email) || key.includes(owner.id) || !/^idp:\{[\w:-]+\}/.test(key));
  figure(t, 'T45', { did: `${keys.length} keys of Redis after a login and a deletion code`, figure: `${plain.length} with an address or id, or without a hash tag`, ok: plain.length === 0 });
  for (const key of keys) {
    t.match(key, /^idp:/);
    t.ok((await redis.pttl(key)) > 0, key.replace(/\{.*\}/, '{…}'));
    const value = JSON.stringify((await redis.type(key)) === 'hash' ? await redis.hgetall(key) : key);
    for (const secret of [code, owner.id, owner.email]) t.notOk(key.includes(secret) || value.includes(secret));
  }
});
