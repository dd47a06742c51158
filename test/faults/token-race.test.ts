import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import t, { type Test } from 'tap';
import { served, tally } from '../support/attempts.js';
import type { Answer } from '../support/client.js';
import { openInbox, type Inbox } from '../support/inbox.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { count, times } from '../support/otp.js';
import { until } from '../support/patience.js';
import { untilCrowded } from '../support/races.js';
import { brokenBuild } from '../support/racy.js';
import { signUpAt } from '../support/sign-up.js';

const AT_ONCE = 50;
const inbox = openInbox(t);
const world = await startNodes(t, 3, inbox.settings);
const { mysql } = world.needs;

/** The same call so many times at once, over all nodes, while the account's row is held, so that none is done before all have come. */
async function storm({ nodes, needs }: Nodes, id: string, path: string, bodyOf: (i: number) => object): Promise<Answer[]> {
  const { answers } = await needs.mysql.transaction(async (tx) => {
    await tx.rows('SELECT id FROM users WHERE id = ? FOR UPDATE', [id]);
    const racing = times(AT_ONCE, (i) => nodes[i % nodes.length]!.client().request('POST', `/api/auth/${path}`, { body: bodyOf(i) }));
    await untilCrowded(tx, 3);
    return { answers: racing };
  });
  return answers;
}

const passwordOf = (i: number): string => `password number ${i} of many`;

/** So many resets at once with one token. */
async function resets(on: Nodes, mails: Inbox): Promise<{ answers: Answer[]; email: string; id: string }> {
  const { id, email } = await on.account();
  const token = await signUpAt(on.nodes[0]!, mails).resetToken(email);
  return { answers: await storm(on, id, 'password/reset', (i) => ({ token, password: passwordOf(i) })), email, id };
}

const entries = async (id: string, action: string): Promise<number> => (await mysql.rows('SELECT id FROM audit_log WHERE user_id = ? AND action = ?', [id, action])).length;

t.test('of 50 uses of one reset token at once on three nodes one succeeds, and its password is the one that counts', async (t) => {
  for (let round = 0; round < 2; round += 1) {
    const { answers, email, id } = await resets(world, inbox);
    t.match(served(answers), { OK: 1, TOKEN_INVALID: Number });
    t.equal(Object.keys(served(answers)).length, 2);
    const winner = answers.findIndex(({ status }) => status === 204);
    const client = world.nodes[round]!.client();
    t.equal((await client.login(email, passwordOf(winner))).status, 200);
    t.equal(await entries(id, 'password.reset'), 1);
    t.equal((await mysql.rows("SELECT seq FROM event_outbox WHERE user_id = ? AND type = 'identity.user.password_changed'", [id])).length, 1);
  }
});

t.test('of 50 uses of one verification token at once one succeeds', async (t) => {
  const { id, email } = await world.account({ verified: false });
  const { resend, token } = signUpAt(world.nodes[0]!, inbox);
  await resend(email);
  const good = await token(email, 'verify');
  const counts = served(await storm(world, id, 'email/verify', () => ({ token: good })));
  t.match(counts, { OK: 1, TOKEN_INVALID: Number });
  t.equal(Object.keys(counts).length, 2);
  t.equal(await entries(id, 'email.verified'), 1);
});

t.test('a build that does not ask who used the token up lets several succeed: the race is one', async (t) => {
  const mails = openInbox(t);
  const broken = await startNodes(t, 3, mails.settings, brokenBuild(t, 'dist/src/store/account-tokens.js', 'return affected === 1', 'return affected >= 0'));
  const { answers } = await resets(broken, mails);
  t.ok(count(answers.map(({ status }) => status), 204) > 1, JSON.stringify(tally(answers)));
});

/** How many sign-ups were dealt with. */
const done = async (): Promise<number> => (await mysql.rows("SELECT id FROM audit_log WHERE action IN ('account.registered', 'account.registration_repeated')")).length;

/** So many sign-ups for one address at once; all of them look before one can insert. Gives the accounts there are then. */
async function signUps(t: Test, email: string): Promise<{ id: string }[]> {
  const before = await done();
  const blocker = await createConnection({ uri: world.env['MYSQL_URL']! });
  t.teardown(() => blocker.end());
  await blocker.query('LOCK TABLES users WRITE');
  const answers = await times(AT_ONCE, (i) => world.nodes[i % 3]!.client().request('POST', '/api/auth/register', { body: { email, password: passwordOf(i) } }));
  t.same(tally(answers), { OK: AT_ONCE });
  await sleep(300);
  await blocker.query('UNLOCK TABLES');
  await until(async () => (await done()) === before + AT_ONCE);
  return mysql.rows<{ id: string }>('SELECT id FROM users WHERE email = ?', [email]);
}

t.test('of 50 sign-ups for one address at once on three nodes one opens an account', async (t) => {
  const accounts = await signUps(t, 'ann@example.com');
  t.equal(accounts.length, 1);
  t.equal(await entries(accounts[0]!.id, 'account.registered'), 1);
  t.equal((await mysql.rows("SELECT seq FROM event_outbox WHERE type = 'identity.user.registered'")).length, 1);
  await inbox.nth('ann@example.com', 'email_verification_requested', AT_ONCE);
  const statuses = [];
  for (const { data } of inbox.to('ann@example.com')) statuses.push((await world.nodes[0]!.client().request('POST', '/api/auth/email/verify', { body: { token: data['token'] } })).status);
  t.equal(count(statuses, 204), 1, 'of all the tokens mailed the newest is good');
});

t.test('without the unique key there would be several accounts: the race is one', async (t) => {
  await mysql.run('ALTER TABLE users DROP INDEX users_email');
  const { length } = await signUps(t, 'bob@example.com');
  t.ok(length > 1, `${length} accounts`);
});
