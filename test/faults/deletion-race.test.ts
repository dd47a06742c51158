import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import t from 'tap';
import type { Answer } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { openInbox, type Inbox } from '../support/inbox.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { count, times } from '../support/otp.js';
import { stored } from '../support/owner.js';
import { until } from '../support/patience.js';
import { untilCrowded } from '../support/races.js';
import { brokenBuild } from '../support/racy.js';

const AT_ONCE = 50;
const NO_CLAIM = ['lua/otp-claim.lua', 'if row[3] or tonumber(row[4] or 0) > now then return {1, 0} end', ''] as const;

/** An owner who is known on three nodes and has the right code; `storm` sends it with so many deletions at once. */
async function doom({ nodes, account, needs }: Nodes, inbox: Inbox) {
  const owner = await account();
  const { accessToken } = (await nodes[0]!.client().login(owner.email, owner.password)).body;
  const bearer = { authorization: `Bearer ${accessToken as string}` };
  await nodes[0]!.client().request('POST', '/api/auth/account/delete-request', { headers: bearer });
  const { otp } = (await inbox.nth(owner.email, 'account_deletion_requested')).data;
  const storm = (): Promise<Answer[]> => times(AT_ONCE, (i) => nodes[i % 3]!.client().request('DELETE', `${i % 2 === 0 ? '/api' : ''}/auth/account`, { headers: bearer, body: { otp } }));
  /** The same while the account's row is held, so that none is done before others have come; one at most comes so far with a claim. */
  const stormHeld = async (hasClaim = true): Promise<Answer[]> => {
    const { answers } = await needs.mysql.transaction(async (tx) => {
      await tx.rows('SELECT id FROM users WHERE id = ? FOR UPDATE', [owner.id]);
      const answers = storm();
      await untilCrowded(tx, hasClaim ? 1 : 3);
      return { answers };
    });
    return answers;
  };
  return { owner, storm, stormHeld };
}

const successes = (answers: Answer[]): number => count(answers.map(({ status }) => status), 200);

t.test('of 50 deletions at once with the right code on three nodes one succeeds, with one event', async (t) => {
  const inbox = openInbox(t);
  const world = await startNodes(t, 3, inbox.settings);
  const { mysql } = world.needs;
  const redis = new Redis(world.redis.url);
  const subscriber = redis.duplicate();
  t.teardown(() => [redis, subscriber].forEach((client) => client.disconnect()));
  const heard: string[] = [];
  subscriber.on('message', (_channel, text: string) => heard.push((JSON.parse(text) as { userId: string }).userId));
  await subscriber.subscribe('identity.user.deleted');

  const rounds = scaled(4, 10);
  let most = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const { owner, storm, stormHeld } = await doom(world, inbox);
    const answers = await (round % 2 === 0 ? stormHeld() : storm());
    t.equal(successes(answers), 1, 'one success');
    const refusals = answers.filter(({ status }) => status !== 200).map(({ body }) => body['code']);
    t.same(refusals.filter((code) => !['OTP_INVALID', 'UNAUTHENTICATED', 'UNAVAILABLE'].includes(String(code))), [], 'the others hear that the code is used up, or that they are signed out');
    const now = await stored(mysql, owner.id);
    t.match(now, { deletedAt: Date, liveSessions: 0, events: [{ type: 'identity.user.deleted', time: answers.find(({ status }) => status === 200)!.body['deletedAt'] }] });
    t.equal(now.events.length, 1, 'one event');
    most = Math.max(most, successes(answers), now.events.length);
    t.equal(count(now.audit, 'account.deleted success'), 1, 'one entry of the audit');
    await inbox.nth(owner.email, 'account_deleted');
    await until(async () => heard.includes(owner.id));
    // Time for a second one, if there were one.
    await sleep(50);
    t.equal(count(heard, owner.id), 1, 'heard once');
    t.equal(await redis.xlen('idp:events'), round, 'on the stream once');
    t.equal(count(inbox.to(owner.email).map(({ template }) => template), 'account_deleted'), 1, 'one message to the owner');
  }
  figure(t, 'T29', { did: `${rounds} times ${AT_ONCE} deletions with the right code at once on 3 nodes`, figure: `${most} success and event each time`, ok: most === 1 });
});

t.test('even when the code is given to everybody the row of the account lets one through', async (t) => {
  const inbox = openInbox(t);
  const world = await startNodes(t, 3, inbox.settings, brokenBuild(t, ...NO_CLAIM));
  const { owner, stormHeld } = await doom(world, inbox);
  t.equal(successes(await stormHeld(false)), 1);
  t.equal((await stored(world.needs.mysql, owner.id)).events.length, 1);
});

t.test('without either condition several succeed: the race is one', async (t) => {
  const inbox = openInbox(t);
  const store = 'dist/src/store/deletions.js';
  const main = brokenBuild(t, ...NO_CLAIM, [store, "AND status = 'active' AND deleted_at IS NULL FOR UPDATE", 'FOR UPDATE'], [store, 'WHERE id = ? AND deleted_at IS NULL', 'WHERE id = ?']);
  const world = await startNodes(t, 3, inbox.settings, main);
  const { owner, stormHeld } = await doom(world, inbox);
  const succeeded = successes(await stormHeld(false));
  t.ok(succeeded > 1, `${succeeded} succeeded`);
  t.equal((await stored(world.needs.mysql, owner.id)).events.length, succeeded);
});
