import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, type Connection } from 'mysql2/promise';
import t, { type Test } from 'tap';
import { marks } from '../../../src/store/mysql.js';
import { startApp, type TestApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { figure, scaled } from '../../support/figures.js';
import { openInbox } from '../../support/inbox.js';
import { startNodes } from '../../support/nodes.js';
import { count, times } from '../../support/otp.js';
import { atMost } from '../../support/patience.js';

const inbox = openInbox(t);
const service = await startApp(t, inbox.settings);
const ask = (email: string, { client }: TestApp = service): Promise<Answer> => client().request('POST', '/api/auth/account/restore-request', { body: { email } });
const deleted = (email: string) => service.account({ email, deletedAt: new Date() });
const mailsTo = (address: string): number => inbox.to(address).length;

/** Nobody can read the accounts until UNLOCK TABLES. */
async function lockUsers(t: Test, url: string): Promise<Connection> {
  const blocker = await createConnection({ uri: url });
  t.teardown(() => blocker.end());
  await blocker.query('LOCK TABLES users WRITE');
  return blocker;
}

t.test('only a deleted account is sent a code; the reply is the same for every address, byte for byte', async (t) => {
  await deleted('deleted@example.com');
  await service.account({ email: 'active@example.com' });
  await service.account({ email: 'disabled@example.com', status: 'disabled' });
  const seen = [];
  for (const email of ['deleted@example.com', 'active@example.com', 'disabled@example.com', 'unknown@example.com', 'no address at all', "a}b{c' OR 1=1 --"]) {
    const { status, headers, text } = await ask(email);
    seen.push({ status, text, headers: [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)) });
  }
  t.equal(seen[0]!.status, 204);
  t.equal(seen[0]!.text, '');
  for (const one of seen) t.same(one, seen[0]);
  await inbox.nth('deleted@example.com', 'account_restore_requested');
  await sleep(350);
  t.equal(mailsTo('deleted@example.com'), 1);
  for (const email of ['active@example.com', 'disabled@example.com', 'unknown@example.com']) t.equal(mailsTo(email), 0);
});

t.test('the mail goes to the stored address, and look-alikes of it are other addresses', async (t) => {
  await deleted('kate@example.com');
  for (const email of ['\u212Aate@example.com', 'k\u0061\u0301te@example.com', 'kate@example.com ', ' kate@example.com', 'ｋate@example.com']) t.equal((await ask(email)).status, 204);
  await sleep(350);
  const sent = mailsTo('kate@example.com');
  figure(t, 'T44', { did: '5 look-alikes of a deleted address at restore-request', figure: `${sent} mails`, ok: sent === 0 });
  await ask('KATE@Example.com');
  t.equal((await inbox.nth('kate@example.com', 'account_restore_requested')).channel, 'EMAIL');
});

t.test('an unverified address of a deleted account is sent its code', async () => {
  await service.account({ email: 'unverified@example.com', deletedAt: new Date(), verified: false });
  await ask('unverified@example.com');
  await inbox.nth('unverified@example.com', 'account_restore_requested');
});

t.test('the reply does not wait for anything that depends on the address', async (t) => {
  await deleted('waiting@example.com');
  const blocker = await lockUsers(t, service.env['MYSQL_URL']!);
  const started = performance.now();
  for (const email of ['waiting@example.com', 'unknown@example.com']) t.equal((await ask(email)).status, 204);
  t.ok(performance.now() - started < atMost(500));
  await sleep(600);
  t.equal(mailsTo('waiting@example.com'), 0);
  await blocker.query('UNLOCK TABLES');
  await inbox.nth('waiting@example.com', 'account_restore_requested');
});

t.test('the time of a reply does not tell deleted accounts from unknown addresses', async (t) => {
  const rounds = scaled(300, 800);
  // Nearly four and three and a half standard errors on either side of the half.
  const band = scaled(0.1, 0.05);
  const client = service.client();
  for (let i = 0; i < rounds; i += 1) await service.app.needs.mysql.run('INSERT INTO users (id, email, deleted_at) VALUES (UUID(), ?, UTC_TIMESTAMP(3))', [`known${i}@example.com`]);
  const took = async (email: string): Promise<number> => {
    const started = performance.now();
    await client.request('POST', '/api/auth/account/restore-request', { body: { email } });
    return performance.now() - started;
  };
  const [known, unknown]: [number[], number[]] = [[], []];
  for (let i = 0; i < rounds; i += 1) {
    if (i % 2 === 0) known.push(await took(`known${i}@example.com`));
    unknown.push(await took(`nobody${i}@example.com`));
    if (i % 2 === 1) known.push(await took(`known${i}@example.com`));
  }
  // Chance that a known address takes longer than an unknown one.
  const auc = known.reduce((sum, a) => sum + unknown.filter((b) => a > b).length, 0) / rounds ** 2;
  figure(t, 'T08', { did: `${rounds} + ${rounds} requests for deleted and unknown addresses in turn`, figure: `AUC ${auc.toFixed(3)}`, ok: Math.abs(auc - 0.5) < band });
});

t.test('a stop right after the replies loses no code', async (t) => {
  const { nodes, needs, account, env } = await startNodes(t, 1, inbox.settings);
  const ids = await times(40, async (i) => (await account({ email: `stopped${i}@example.com`, passwordHash: null, deletedAt: new Date() })).id);
  const client = nodes[0]!.client();
  // No code can be made before the stop has begun.
  const blocker = await lockUsers(t, env['MYSQL_URL']!);
  const answers = await times(40, (i) => client.request('POST', '/auth/account/restore-request', { body: { email: `stopped${i}@example.com` } }));
  t.equal(count(answers.map(({ status }) => status), 204), 40);
  const stopped = nodes[0]!.stop('SIGTERM');
  await sleep(400);
  await blocker.query('UNLOCK TABLES');
  t.equal(await stopped, 0);
  t.equal((await needs.mysql.rows(`SELECT id FROM notification_outbox WHERE user_id IN (${marks(40)})`, ids)).length, 40);
});
