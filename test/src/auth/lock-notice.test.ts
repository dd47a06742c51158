import { pathToFileURL } from 'node:url';
import t from 'tap';
import * as gateLocks from '../../../src/store/gate-locks.js';
import { addTotp, type Account } from '../../support/accounts.js';
import { codeOf, lockOut, strangers, WRONG } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import { challenge, verify } from '../../support/factors.js';
import { figure, scaled } from '../../support/figures.js';
import { openInbox } from '../../support/inbox.js';
import { times } from '../../support/otp.js';
import { brokenBuild } from '../../support/racy.js';

const inbox = openInbox(t);
const { app, client, account } = await startApp(t, { ...inbox.settings, LOGIN_DELAYS_S: '0' });
const { mysql } = app.needs;
const stranger = strangers(client);

/** Messages that were written, sent or not. */
const written = async (id?: string): Promise<number> => (await mysql.rows(`SELECT id FROM notification_outbox WHERE template = 'account_locked' AND user_id ${id === undefined ? 'IS NULL' : '= ?'}`, id === undefined ? [] : [id])).length;
/** Lifts the lock as an operator may. */
const unlock = ({ id }: Account): Promise<unknown> => mysql.run('UPDATE users SET locked_until = NULL WHERE id = ?', [id]);

t.test('the owner of a locked account is told once, on each proven contact, from where and until when', async (t) => {
  const owner = await account({ phone: '+4930112233' });
  await lockOut(client({ ip: '203.0.113.77' }), owner.email);
  for (let i = 0; i < 5; i += 1) t.equal(codeOf(await stranger().login(owner.email, WRONG)), 'ACCOUNT_LOCKED');
  const mail = await inbox.nth(owner.email, 'account_locked');
  t.match(mail, { channel: 'EMAIL', data: { ipAddress: '203.0.113.77', guessed: 'password' }, text: /This was not you\? Nobody got in/ });
  const [row] = await mysql.rows<{ until: Date }>('SELECT locked_until AS until FROM users WHERE id = ?', [owner.id]);
  t.ok(Math.abs(new Date(mail.data['lockedUntil']!).getTime() - row!.until.getTime()) < 1000);
  t.match(await inbox.nth('+4930112233', 'account_locked'), { channel: 'WHATSAPP', text: /203\.0\.113\.77/ });
  t.equal(await written(owner.id), 2);
});

t.test('no message goes to an address that is not proven, or has no account in use', async (t) => {
  const nobodies = [await account({ verified: false }), await account({ deletedAt: new Date() }), await account({ status: 'disabled' })];
  for (const { email, id } of nobodies) {
    await lockOut(stranger(), email);
    t.equal(codeOf(await stranger().login(email, WRONG)), 'ACCOUNT_LOCKED');
    t.equal(await written(id), 0);
  }
  await lockOut(stranger(), 'nobody-at-all@example.com');
  t.equal(await written(), 0);
});

t.test('who locks an account all day has its owner told three times, and again the day after', async (t) => {
  const owner = await account();
  const locks = scaled(5, 24);
  for (let i = 0; i < locks; i += 1) {
    await unlock(owner);
    await lockOut(stranger(), owner.email);
    t.equal(codeOf(await stranger().login(owner.email, WRONG)), 'ACCOUNT_LOCKED');
  }
  const told = await written(owner.id);
  figure(t, 'T05', { did: `${locks} locks of an account within a day`, figure: `${told} messages to its owner`, ok: told === 3 });
  await mysql.run('UPDATE notification_outbox SET created_at = created_at - INTERVAL 25 HOUR WHERE user_id = ?', [owner.id]);
  await unlock(owner);
  await lockOut(stranger(), owner.email);
  t.equal(await written(owner.id), 4);
});

t.test('when codes were guessed the owner hears that somebody may have the password', async (t) => {
  const owner = await account();
  await addTotp(app.needs, owner.id);
  const from = stranger();
  for (let i = 0; i < 5; i += 1) await verify(from, await challenge(from, owner), 'totp', '000000');
  t.match(await inbox.nth(owner.email, 'account_locked'), { data: { guessed: 'code' }, text: /they know your password/ });
});

t.test('guesses from a familiar source while the account is locked tell the owner nothing new', async (t) => {
  const owner = await account();
  const familiar = stranger();
  await familiar.login(owner.email, owner.password);
  await lockOut(stranger(), owner.email);
  await lockOut(familiar, owner.email);
  t.equal(codeOf(await familiar.login(owner.email, owner.password)), 'ACCOUNT_LOCKED');
  t.equal(await written(owner.id), 1);
});

/** How many of 8 who write one lock at the same time are told that it is new. */
async function tellers({ lockByGate }: Pick<typeof gateLocks, 'lockByGate'>): Promise<number> {
  const { id } = await account();
  const { racing } = await mysql.transaction(async (tx) => {
    await tx.rows('SELECT id FROM users WHERE id = ? FOR UPDATE', [id]);
    const racing = times(8, (i) => mysql.transaction((own) => lockByGate(own, id, { ms: 60_000 + i, step: 1 })));
    await new Promise((resolve) => setTimeout(resolve, 200));
    return { racing };
  });
  return (await racing).filter(Boolean).length;
}

t.test('of any number of nodes that write one lock one tells', async (t) => {
  const told = await tellers(gateLocks);
  figure(t, 'T05', { did: '8 writers of one lock at once', figure: `${told} tells the owner`, ok: told === 1 });
});

t.test('without its lock of the row several would: the race is one', async (t) => {
  const main = brokenBuild(t, 'dist/src/store/gate-locks.js', 'AS wasOpen FROM users WHERE id = ? FOR UPDATE', 'AS wasOpen FROM users WHERE id = ?');
  const told = await tellers((await import(new URL('store/gate-locks.js', pathToFileURL(main)).href)) as typeof gateLocks);
  t.ok(told > 1, `${told} tell`);
});

