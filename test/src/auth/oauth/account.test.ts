import t from 'tap';
import { codeOf, lockOut, pause } from '../../../support/attempts.js';
import { addTotp, type NewAccount } from '../../../support/accounts.js';
import { openInbox } from '../../../support/inbox.js';
import { startOAuthApp } from '../../../support/oidc.js';

const inbox = openInbox(t);
const { app, client, account, oidc, signIn } = await startOAuthApp(t, { ...inbox.settings, LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '0.02' });
const { mysql, clock } = app.needs;

const claimsOf = (token: string): Record<string, unknown> => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>;
const countOf = async (table: string, userId: string): Promise<number> => (await mysql.rows(`SELECT 1 FROM ${table} WHERE user_id = ?`, [userId])).length;

let persons = 0;
/** A person at the provider with the address of an account here. */
async function acquainted(wanted: NewAccount = {}, claims: Record<string, unknown> = {}) {
  const local = await account(wanted);
  const person = `person-${(persons += 1)}`;
  oidc.people[person] = { email: local.email, email_verified: true, given_name: 'Pat', family_name: 'Doe', ...claims };
  return { ...local, person };
}

/** What a refused sign-in must not have left behind. */
async function untouched(userId: string): Promise<boolean> {
  const counts = await Promise.all(['sessions', 'profiles', 'oauth_identities', 'event_outbox', 'notification_outbox', 'mfa_tokens'].map((table) => countOf(table, userId)));
  return counts.every((count) => count === 0);
}

t.test('an account with a verified address is linked, and its owner is told once', async (t) => {
  const { id, email, password, person } = await acquainted({}, { email: 'OWNER@example.com' });
  await mysql.run("UPDATE users SET email = 'owner@example.com' WHERE id = ?", [id]);
  const given = await signIn(person);
  t.match(await client().profile(given['access_token']), { body: { id, profiles: [{ provider: 'test', givenName: 'Pat', familyName: 'Doe' }] } });
  t.match(await inbox.nth('owner@example.com', 'account_provider_linked'), { channel: 'EMAIL', data: { provider: 'test' } });
  t.equal(claimsOf((await signIn(person))['access_token']!)['sub'], id);
  t.equal(await countOf('profiles', id), 1);
  t.equal(await countOf('notification_outbox', id), 1);
  t.equal(await countOf('event_outbox', id), 0, 'no account was made');
  const audit = await mysql.rows<{ action: string }>('SELECT action FROM audit_log WHERE user_id = ? ORDER BY id', [id]);
  t.same(audit.map(({ action }) => action), ['account.provider_linked', 'oauth', 'oauth']);
  t.equal(codeOf(await client().login('owner@example.com', password)), 'OK', 'the password stays good');
  t.not(email, 'owner@example.com');
});

t.test('an account whose address nobody has verified is not linked: somebody else may have registered it', async (t) => {
  const { id, person } = await acquainted({ verified: false });
  t.same(await signIn(person), { error: 'account_exists_unverified' });
  t.ok(await untouched(id));
  const [entry] = await mysql.rows<{ status: string; detail: string }>("SELECT status, detail FROM audit_log WHERE user_id = ? AND action = 'oauth'", [id]);
  t.match({ ...entry, detail: JSON.parse(entry!.detail) as unknown }, { status: 'failure', detail: { outcome: 'account_exists_unverified', provider: 'test' } });
  await mysql.run('UPDATE users SET email_verified_at = UTC_TIMESTAMP(3) WHERE id = ?', [id]);
  t.match(await signIn(person), { access_token: String });
});

t.test('an address that the provider has not verified, or does not give, opens and makes nothing', async (t) => {
  const { id, email, person } = await acquainted();
  const before = await mysql.rows('SELECT id FROM users');
  for (const claims of [{ email }, { email, email_verified: false }, { email, email_verified: 'false' }, { email, email_verified: 1 }, { email_verified: true }, { email: [email], email_verified: true }, { email: `${email}\u0000`, email_verified: true }, { email: 'x'.repeat(250) + '@example.com', email_verified: true }]) {
    oidc.people[person] = claims;
    t.same(await signIn(person), { error: 'email_unverified' }, JSON.stringify(claims).slice(0, 80));
  }
  t.ok(await untouched(id));
  t.equal((await mysql.rows('SELECT id FROM users')).length, before.length);
  oidc.people[person] = { email, email_verified: 'true' };
  t.match(await signIn(person), { access_token: String }, 'some providers write true as a text');
});

t.test('an address that the provider gave to somebody else does not bring them into the account of its former holder', async (t) => {
  const { id, email, person } = await acquainted();
  t.match(await signIn(person), { access_token: String });
  oidc.people['newcomer'] = { email, email_verified: true };
  t.same(await signIn('newcomer'), { error: 'account_linked_otherwise' });
  t.equal(await countOf('oauth_identities', id), 1);
});

t.test('a deleted or disabled account stays closed, known by address or by subject', async (t) => {
  const deletedAt = new Date(Math.floor(Date.now() / 1000) * 1000);
  const until = new Date(deletedAt.getTime() + 30 * 24 * 3600 * 1000).toISOString();
  for (const [wanted, ending] of [[{ deletedAt }, { error: 'account_deleted', permanent_deletion_at: until }], [{ status: 'disabled' }, { error: 'account_inactive' }]] as [NewAccount, object][]) {
    const { id, person } = await acquainted(wanted);
    t.same(await signIn(person), ending, 'by address');
    t.ok(await untouched(id));
    await mysql.run("UPDATE users SET deleted_at = NULL, status = 'active' WHERE id = ?", [id]);
    t.match(await signIn(person), { access_token: String });
    await mysql.run('UPDATE users SET deleted_at = ?, status = ? WHERE id = ?', [wanted.deletedAt ?? null, wanted.status ?? 'active', id]);
    t.same(await signIn(person), ending, 'by subject');
    t.equal(await countOf('sessions', id), 1);
  }
});

t.test('a row deleted by hand leaves nobody shut out', async (t) => {
  const { id, person } = await acquainted();
  await signIn(person);
  await mysql.run('DELETE FROM users WHERE id = ?', [id]);
  const again = claimsOf((await signIn(person))['access_token']!)['sub'];
  t.not(again, id);
  t.equal(claimsOf((await signIn(person))['access_token']!)['sub'], again);
});

t.test('a second factor stays due: the fragment has a challenge, and its code opens the session', async (t) => {
  const { id, person } = await acquainted();
  const totp = await addTotp(app.needs, id);
  const given = await signIn(person, { state: 's' });
  t.match(given, { mfa_token: /^[\w-]{43}$/, methods: 'totp', expires_in: '300', state: 's' });
  t.same(Object.keys(given), ['mfa_token', 'methods', 'expires_in', 'state']);
  t.equal(await countOf('sessions', id), 0);
  const verify = (code: string) => client().request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken: given['mfa_token'], method: 'totp', code } });
  t.equal(codeOf(await verify('000000')), 'MFA_INVALID');
  const entered = await verify(totp(clock.now()));
  t.match(entered, { status: 200, body: { refreshExpiresIn: 14 * 24 * 3600 } }, 'these tokens came in a body');
  t.same(claimsOf(entered.body['accessToken'] as string)['amr'], ['fed', 'otp']);
});

t.test('a lock holds for this way in too, and a whole sign-in clears what was counted', async (t) => {
  const { id, email, password, person } = await acquainted();
  await lockOut(client({ ip: '198.51.100.1' }), email);
  t.match(await signIn(person), { error: 'account_locked', retry_after: /^[12]$/ });
  t.equal(await countOf('sessions', id), 0);
  await pause(1300);
  t.match(await signIn(person), { access_token: String });
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await client({ ip: '198.51.100.1' }).login(email, 'wrong')), 'INVALID_CREDENTIALS');
  t.equal(codeOf(await client({ ip: '198.51.100.1' }).login(email, password)), 'OK');

  await mysql.run('UPDATE users SET locked_until = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE id = ?', [id]);
  t.match(await signIn(person), { error: 'account_locked' }, 'a lock by hand');
});

t.test('two providers at once for one account: whoever comes second finds it linked', async (t) => {
  const { id, email } = await acquainted();
  for (const person of ['twin-1', 'twin-2', 'twin-3']) oidc.people[person] = { email, email_verified: true };
  const endings = await Promise.all(['twin-1', 'twin-2', 'twin-3'].map((person) => signIn(person)));
  t.same(endings.map((ending) => ending['error'] ?? 'in').sort(), ['account_linked_otherwise', 'account_linked_otherwise', 'in']);
  t.equal(await countOf('oauth_identities', id), 1);
  t.equal(await countOf('profiles', id), 1);
});

t.test('names keep whole characters, of bounded length', async (t) => {
  oidc.people['long'] = { email: 'long@example.com', email_verified: true, given_name: '😀'.repeat(300), family_name: ['x'] };
  const me = await client().profile((await signIn('long'))['access_token']);
  t.match(me.body, { profiles: [{ givenName: '😀'.repeat(255), familyName: null }] });
});
