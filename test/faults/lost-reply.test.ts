import t from 'tap';
import { codeOf } from '../support/attempts.js';
import { createClient, type Issued } from '../support/client.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { times } from '../support/otp.js';
import { until } from '../support/patience.js';
import { startProxy } from '../support/proxy.js';

const ROUNDS = scaled(6, 60);
/** Replies lost at the same moment. */
const AT_ONCE = 4;
/** How long the way to the node takes, in ms: time to see the commit and cut the wire before the reply is through. */
const WAY_MS = 400;

interface Session {
  id: string;
  tokens: Issued;
  generation: () => Promise<number>;
}

/** Sessions whose refresh was committed and whose reply was cut on the wire. */
async function cutOff({ nodes, account, needs: { mysql } }: Nodes): Promise<Session[]> {
  const proxy = await startProxy(t, nodes[0]!.base);
  const sessions = await times(AT_ONCE, async (): Promise<Session> => {
    const { email, password } = await account();
    const tokens = (await nodes[0]!.client().login(email, password)).body as unknown as Issued;
    const id = (JSON.parse(Buffer.from(tokens.accessToken.split('.')[1]!, 'base64url').toString()) as { sid: string }).sid;
    return { id, tokens, generation: async () => (await mysql.rows<{ n: number }>('SELECT generation AS n FROM sessions WHERE id = ?', [id]))[0]!.n };
  });
  proxy.delay(WAY_MS);
  const far = proxy.via(nodes[0]!.base).replace(/\/$/, '');
  const lost = sessions.map(({ tokens }) => createClient(far).refresh(tokens.refreshToken).then(({ status }) => status, () => 'cut'));
  await until(async () => (await Promise.all(sessions.map(({ generation }) => generation()))).every((n) => n === 1), 5000);
  proxy.cut();
  const ends = await Promise.all(lost);
  if (ends.some((end) => end !== 'cut')) throw new Error(`a reply was through: ${ends.join(', ')}`);
  return sessions;
}

t.test('a reply that is cut off after the commit, and the former token sent again: no session ends, and none has a second successor', async (t) => {
  const world = await startNodes(t, 2);
  let [ended, rotations] = [0, 0];
  for (let round = 0; round < ROUNDS / AT_ONCE; round += 1) {
    const sent = await cutOff(world);
    // All at once: they are forgiven for 2 s only.
    await times(AT_ONCE, async (i) => {
      const { id, tokens, generation } = sent[i]!;
      // Once more on the same node, and on another.
      for (const node of world.nodes) t.equal(codeOf(await node.client().refresh(tokens.refreshToken)), 'REFRESH_TOKEN_INVALID');
      t.equal((await world.nodes[1]!.client().profile(tokens.accessToken)).status, 200, 'who was cut off is still signed in');
      const [row] = await world.needs.mysql.rows<{ revoked: unknown }>('SELECT revoked_at IS NOT NULL AS revoked FROM sessions WHERE id = ?', [id]);
      ended += Number(row!.revoked);
      const n = await generation();
      rotations = Math.max(rotations, n);
    });
  }
  figure(t, 'T20', { did: `${Math.ceil(ROUNDS / AT_ONCE) * AT_ONCE} replies cut on the wire after the commit, the former token sent again on 2 nodes`, figure: `${ended} sessions ended, ${rotations} successor`, ok: ended === 0 && rotations === 1 });
});

t.test('with REFRESH_GRACE_MS whoever was cut off gets the successor that was lost, on any node, and goes on', async (t) => {
  const world = await startNodes(t, 2, { REFRESH_GRACE_MS: '10000' });
  let [successors, alive, all] = [0, 0, 0];
  for (let round = 0; round < ROUNDS / AT_ONCE; round += 1) {
    for (const { tokens, generation } of await cutOff(world)) {
      const again = await Promise.all(world.nodes.map((node) => node.client().refresh(tokens.refreshToken)));
      successors = Math.max(successors, new Set(again.map(({ body }) => body['refreshToken'])).size, await generation());
      all += 1;
      if (codeOf(await world.nodes[1]!.client().refresh(again[0]!.body['refreshToken'])) === 'OK') alive += 1;
    }
  }
  figure(t, 'T20', { did: 'the same with REFRESH_GRACE_MS, then the successor used', figure: `${successors} successor for each, ${alive} of ${all} sessions go on`, ok: successors === 1 && alive === all });
});
