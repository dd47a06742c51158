import { Redis } from 'ioredis';
import t from 'tap';
import { codeOf, pause, served, tally } from '../support/attempts.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { volley, whileHeld } from '../support/races.js';

const { nodes, account, needs, start, env } = await startNodes(t, 3);
const { email, password } = await account();
const REFRESH = '/api/auth/refresh';
const ROUNDS = scaled(5, 20);
const AT_ONCE = scaled(400, 1_000);

const generation = async (): Promise<number> => Number((await needs.mysql.rows<{ n: unknown }>('SELECT SUM(generation) AS n FROM sessions'))[0]!.n);

t.test(`${AT_ONCE} refreshes with one token on three nodes make exactly one successor, round after round`, async (t) => {
  let { refreshToken } = (await nodes[0]!.client().login(email, password)).body;
  let converged = 0;
  const made: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const answers = await volley(nodes, AT_ONCE, REFRESH, () => ({ refreshToken }));
    const won = answers.filter(({ status }) => status === 200);
    const successors = new Set(won.map(({ body }) => `${String(body['refreshToken'])} ${String(body['jti'])}`));
    t.equal(successors.size, 1, 'one successor');
    made.push(successors.size);
    t.same(Object.keys(tally(answers)).filter((code) => !['OK', 'REFRESH_TOKEN_INVALID', 'UNAVAILABLE'].includes(code)), [], 'everybody else is told that the token is not valid');
    t.equal(await generation(), round, 'one rotation in the store');
    converged += won.length;
    refreshToken = won[0]!.body['refreshToken'];
  }
  t.comment(`${converged} of ${ROUNDS * AT_ONCE} got the successor`);
  t.ok(converged > ROUNDS * 3, 'requests under way when the winner committed got it too');
  const { status } = await nodes[1]!.client().refresh(refreshToken);
  t.equal(status, 200, 'the session is alive');
  const most = Math.max(...made);
  figure(t, 'T14', { did: `${ROUNDS} rounds of ${AT_ONCE} refreshes with one token on 3 nodes`, figure: `${most} successor in each round; ${converged} requests got it; then ${status}`, ok: most === 1 && status === 200 });
});

t.test('a request that was sent before the winner commits gets the same successor on every node', async (t) => {
  const { refreshToken, jti } = (await nodes[0]!.client().login(email, password)).body;
  const answers = await whileHeld(needs.mysql, () => volley(nodes, 30, REFRESH, () => ({ refreshToken, jti })));
  t.same(tally(answers), { OK: 30 });
  t.equal(new Set(answers.map(({ body }) => body['refreshToken'])).size, 1);
});

t.test('refresh against logout: after the reply no token of the session works', async (t) => {
  const rounds = scaled(25, 200);
  let alive = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { refreshToken, accessToken } = (await nodes[0]!.client().login(email, password)).body;
    const racing = volley(nodes, 6, REFRESH, () => ({ refreshToken }));
    const logout = await nodes[1]!.client().request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${String(accessToken)}` } });
    t.equal(logout.status, 204);
    for (const { status, body } of await racing) {
      if (status !== 200) continue;
      const again = codeOf(await nodes[2]!.client().refresh(body['refreshToken']));
      const read = (await nodes[2]!.client().profile(body['accessToken'] as string)).status;
      t.equal(again, 'REFRESH_SESSION_REVOKED');
      t.equal(read, 401);
      if (again === 'OK' || read === 200) alive += 1;
    }
    t.match(codeOf(await nodes[0]!.client().refresh(refreshToken)), /REFRESH_(TOKEN_INVALID|SESSION_REVOKED)/);
  }
  figure(t, 'T19', { did: `${rounds} rounds: 6 refreshes on 3 nodes against a logout`, figure: `${alive} tokens worked afterwards`, ok: alive === 0 });
});

t.test('a token that is newest when a replay ends its session is good for nothing from then on', async (t) => {
  const client = nodes[0]!.client();
  const first = (await client.login(email, password)).body;
  const second = (await client.refresh(first['refreshToken'])).body;
  const newest = (await client.refresh(second['refreshToken'])).body;
  t.equal(codeOf(await client.refresh(first['refreshToken'])), 'REFRESH_TOKEN_INVALID');
  // All at once, then on and on: what a window or a cache forgot would let one in later.
  const spanMs = scaled(1_500, 30_000);
  const answers = await volley(nodes, AT_ONCE, REFRESH, () => ({ refreshToken: newest['refreshToken'] }));
  const until = performance.now() + spanMs;
  while (performance.now() < until) {
    answers.push(...(await volley(nodes, 12, REFRESH, () => ({ refreshToken: newest['refreshToken'] }))));
    await pause(50);
  }
  const counts = served(answers);
  t.same(Object.keys(counts), ['REFRESH_SESSION_REVOKED']);
  const { status } = await nodes[1]!.client().profile(newest['accessToken'] as string);
  figure(t, 'T16', { did: `${answers.length} refreshes with the newest token after a replay, within ${spanMs / 1000} s, on 3 nodes`, figure: `${counts['OK'] ?? 0} accepted; its access token ${status}`, ok: !counts['OK'] && status === 401 });
});

t.test('what was replaced or revoked stays so when every node is killed and Redis is emptied', async (t) => {
  const client = nodes[0]!.client();
  const first = (await client.login(email, password)).body;
  const second = (await client.refresh(first['refreshToken'])).body;
  const third = (await client.refresh(second['refreshToken'])).body;
  const revoked = (await client.login(email, password)).body;
  await client.request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${String(revoked['accessToken'])}` } });
  await Promise.all(nodes.map((node) => node.stop('SIGKILL')));
  const redis = new Redis(env['REDIS_URL']!);
  await redis.flushall();
  redis.disconnect();
  const node = await start();
  t.equal(codeOf(await node.client().refresh(revoked['refreshToken'])), 'REFRESH_SESSION_REVOKED');
  t.equal(codeOf(await node.client().refresh(first['refreshToken'])), 'REFRESH_TOKEN_INVALID');
  t.equal(codeOf(await node.client().refresh(third['refreshToken'])), 'REFRESH_SESSION_REVOKED', 'an older generation ends the session, before and after a restart');
  const again = await Promise.all([first, second, third, revoked].map(async (tokens) => codeOf(await node.client().refresh(tokens['refreshToken']))));
  const accepted = again.filter((code) => code === 'OK').length;
  figure(t, 'T18', { did: 'rotated and logged out, all nodes killed with -9, Redis emptied, then every token tried', figure: `${accepted} of ${again.length} accepted`, ok: accepted === 0 });
});
