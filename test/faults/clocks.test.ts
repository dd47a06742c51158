import t from 'tap';
import { addTotp } from '../support/accounts.js';
import { codeOf, pause } from '../support/attempts.js';
import type { Answer, Issued } from '../support/client.js';
import { offBy, steppable } from '../support/clocks.js';
import { challenge, verify } from '../support/factors.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes, type Node } from '../support/nodes.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The shortest life of an access token that the service takes, in seconds. */
const SHORT_S = 5;

const { start, account, needs } = await startNodes(t, 0);
const clock = steppable(t);
const OFF_MS = [HOUR, -HOUR, MINUTE, -MINUTE].slice(0, scaled(2, 4));
const [truthful, stepped, ...off] = await Promise.all([start(), start(clock.settings), ...OFF_MS.map((ms) => start(offBy(ms)))]);
const nodes: Node[] = [truthful, stepped, ...off];

/** What was refused that is good, and what was accepted that is over. */
let [spurious, stale, asked] = [0, 0, 0];
const mustWork = ({ status }: Answer): void => {
  asked += 1;
  if (status !== 200) spurious += 1;
};
const mustNot = ({ status }: Answer): void => {
  asked += 1;
  if (status !== 401) stale += 1;
};

/** Tokens of nodes that give them a short life; they are over when the other tests are. */
const brief: Issued[] = [];
const brieflyAt = performance.now();
for (const ms of [HOUR, -HOUR].slice(0, scaled(1, 2))) {
  const issuer = await start({ ...offBy(ms), ACCESS_TTL_S: String(SHORT_S) });
  const { email, password } = await account();
  brief.push((await issuer.client().login(email, password)).body as unknown as Issued);
  await issuer.stop();
}
for (const { accessToken } of brief) mustWork(await truthful.client().profile(accessToken));

t.test('the clocks of these nodes are off indeed', (t) => {
  const logged = ({ output }: Node): number => {
    const { time } = JSON.parse(output().split('\n').find((line) => line.includes('"msg":"listening"'))!) as { time: string };
    return new Date(time).getTime() - Date.now();
  };
  for (const [i, ms] of OFF_MS.entries()) t.ok(Math.abs(logged(off[i]!) - ms) < 40_000, `${logged(off[i]!)} ms`);
  t.end();
});

/** Logs in on each node, and uses on each other what it issued. */
async function everywhere(): Promise<void> {
  for (const [i, issuer] of nodes.entries()) {
    const owner = await account();
    const code = await addTotp(needs, owner.id);
    const other = nodes[(i + 1) % nodes.length]!;
    const signedIn = await verify(other.client(), await challenge(issuer.client(), owner), 'totp', code());
    mustWork(signedIn);
    let tokens = signedIn.body as unknown as Issued;
    for (const node of nodes) {
      mustWork(await node.client().profile(tokens.accessToken));
      const next = await node.client().refresh(tokens.refreshToken);
      mustWork(next);
      if (next.status === 200) tokens = next.body as unknown as Issued;
    }
  }
}

t.test('tokens and codes of any node are good on every other, whatever the clocks say', async (t) => {
  await everywhere();
  t.equal(spurious, 0);
});

t.test('so they are while the clock of a node that runs is stepped', async (t) => {
  const { email, password } = await account();
  for (const ms of [HOUR, -HOUR, 0]) {
    const before = (await stepped.client().login(email, password)).body as unknown as Issued;
    await clock.step(ms);
    mustWork(await stepped.client().profile(before.accessToken));
    mustWork(await stepped.client().refresh(before.refreshToken));
    const after = (await stepped.client().login(email, password)).body as unknown as Issued;
    for (const node of nodes) mustWork(await node.client().profile(after.accessToken));
  }
  t.equal(spurious, 0);
  figure(t, 'T26', { did: `${nodes.length} nodes: true, ${OFF_MS.map((ms) => `${ms > 0 ? '+' : ''}${ms / 1000} s`).join(', ')}, one stepped by ±1 h as it ran; logins with codes, profile and refresh across all`, figure: `${spurious} of ${asked} refused`, ok: spurious === 0 && asked > 40 });
});

t.test('what is over is over on every node', async (t) => {
  await clock.step(-HOUR);
  asked = 0;
  await pause(Math.max(0, brieflyAt + SHORT_S * 1000 + 4000 - performance.now()));
  for (const { accessToken } of brief) for (const node of nodes) mustNot(await node.client().profile(accessToken));
  const codes: string[] = [];
  for (const { refreshToken } of brief) {
    await needs.mysql.run('UPDATE sessions SET expires_at = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND');
    for (const node of nodes) {
      const answer = await node.client().refresh(refreshToken);
      mustNot(answer);
      codes.push(codeOf(answer));
    }
  }
  t.same([...new Set(codes)], ['REFRESH_SESSION_EXPIRED']);
  figure(t, 'T26', { did: 'on the same nodes tokens and sessions that are over by a second', figure: `${stale} of ${asked} accepted`, ok: stale === 0 });
});
