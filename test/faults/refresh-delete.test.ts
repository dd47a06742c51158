import t from 'tap';
import { issueCode } from '../../src/account/otp.js';
import { createLog } from '../../src/log.js';
import { createRedis } from '../../src/store/redis.js';
import { loadScripts } from '../../src/store/scripts.js';
import { pause } from '../support/attempts.js';
import type { Answer, Issued } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { times } from '../support/otp.js';
import { whileHeld } from '../support/races.js';
import { brokenBuild } from '../support/racy.js';
import type { Teardown } from '../support/stores.js';

const NODES = 3;
const REFRESHES = 6;

interface Outcome {
  refreshed: number;
  /** Tokens that a refresh or a profile took after the reply to the deletion. */
  alive: number;
}

/** Deletes accounts while their token is refreshed on every node. */
async function racer(t: Teardown, { nodes, account, needs, redis: server }: Nodes) {
  const log = createLog('silent');
  const redis = createRedis(server.url, log);
  await redis.connect();
  t.teardown(() => redis.disconnect());
  const issuing = { ...needs, log, scripts: loadScripts(redis) };
  const node = (i: number) => nodes[i % NODES]!.client();

  async function begin(i: number) {
    const owner = await account();
    const issued = (await node(i).login(owner.email, owner.password)).body as unknown as Issued;
    const otp = (await issueCode(issuing, owner, 'delete'))!;
    const remove = (): Promise<Answer> => node(i + 1).request('DELETE', '/api/auth/account', { headers: { authorization: `Bearer ${issued.accessToken}` }, body: { otp } });
    const refresh = (): Promise<Answer[]> => times(REFRESHES, (n) => node(n).refresh(issued.refreshToken));
    return { issued, remove, refresh };
  }

  async function judge(issued: Issued, deleted: Answer, refreshes: Answer[]): Promise<Outcome> {
    if (deleted.status !== 200) throw new Error(`the deletion was answered with ${deleted.status} ${deleted.text}`);
    const pairs = [issued, ...refreshes.filter(({ status }) => status === 200).map(({ body }) => body as unknown as Issued)];
    // The access token first: a refresh may end the session.
    const read = await Promise.all(pairs.map(({ accessToken }, n) => node(n).profile(accessToken)));
    const again = await Promise.all(pairs.map(({ refreshToken }, n) => node(n).refresh(refreshToken)));
    return { refreshed: pairs.length - 1, alive: [...read, ...again].filter(({ status }) => status === 200).length };
  }

  return {
    /** From a deletion that comes first to one that comes last. */
    async free(i: number): Promise<Outcome> {
      const { issued, remove, refresh } = await begin(i);
      const later = Math.random() * 40 - 28;
      const [deleted, refreshes] = await Promise.all([pause(Math.max(0, later)).then(remove), pause(Math.max(0, -later)).then(refresh)]);
      return judge(issued, deleted, refreshes);
    },
    /** The row of the session is held: each refresh has seen it alive and waits for it, behind the deletion. */
    async held(i: number): Promise<Outcome> {
      const { issued, remove, refresh } = await begin(i);
      const { deleted, refreshes } = await whileHeld(needs.mysql, async () => {
        const removing = remove();
        await pause(120);
        const [deleted, refreshes] = await Promise.all([removing, refresh()]);
        return { deleted, refreshes };
      });
      return judge(issued, deleted, refreshes);
    },
  };
}

t.test('refresh against the deletion of the account: after its reply no token works', { timeout: 400_000 }, async (t) => {
  const rounds = scaled(40, 1_000);
  const race = await racer(t, await startNodes(t, NODES));
  const outcomes: Outcome[] = [];
  for (let i = 0; i < rounds; i += 4) outcomes.push(...(await times(4, (lane) => race.free(i + lane))));
  const held = scaled(3, 50);
  for (let i = 0; i < held; i += 1) outcomes.push(await race.held(i));
  const alive = outcomes.reduce((sum, one) => sum + one.alive, 0);
  const late = outcomes.filter(({ refreshed }) => refreshed === 0).length;
  t.ok(late >= held && late < outcomes.length, `in ${late} of ${outcomes.length} rounds the deletion was first`);
  figure(t, 'T19', { did: `${outcomes.length} rounds: ${REFRESHES} refreshes on ${NODES} nodes against DELETE of the account`, figure: `${alive} tokens worked afterwards; the deletion was first in ${late} rounds`, ok: alive === 0 });
});

t.test('a build that writes the row of a session as it has read it brings sessions back to life: the race is one', async (t) => {
  const file = 'dist/src/store/sessions.js';
  const world = await startNodes(t, NODES, {}, brokenBuild(t, file, 'SET s.generation = s.generation + 1,', 'SET s.revoked_at = NULL, s.generation = s.generation + 1,',
    [file, 'AND s.revoked_at IS NULL AND s.deleted_at IS NULL AND s.expires_at > UTC_TIMESTAMP(3)\n       AND u.status = \'active\' AND u.deleted_at IS NULL`', '`'],
    // The account is gone all the same: who asks for the session alone would let its token in.
    [file, " AND u.status = 'active' AND u.deleted_at IS NULL`;", '`;'],
  ));
  const { alive } = await (await racer(t, world)).held(0);
  t.ok(alive > 0, `${alive} tokens live on`);
});
