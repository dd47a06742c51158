import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { identityOf } from '../../src/auth/identity.js';
import { KEYS } from '../../src/store/redis.js';
import { tally, WRONG } from '../support/attempts.js';
import type { Account } from '../support/accounts.js';
import type { Answer } from '../support/client.js';
import { dial, errorsOf, NODE_TIMEOUT_MS, ownCluster, type OwnCluster } from '../support/cluster.js';
import { figure, scaled } from '../support/figures.js';
import { openInbox } from '../support/inbox.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { otherService } from '../support/outside.js';
import { signedIn } from '../support/owner.js';
import { atMost, timed, until } from '../support/patience.js';
import { verifiedGuesses } from '../support/races.js';

const UNAVAILABLE = { status: 503, setCookies: [], body: { code: 'UNAVAILABLE', retryAfter: 1 } };
const BACK_MS = atMost(5000);
const PRIMARIES = [0, 1, 2];
/** Users at the service while a primary is killed, and how long each waits between two requests: some 500 a second in the full run. */
const [USERS, REST_MS] = [scaled(12, 60), scaled(50, 100)];
/** Addresses that would move their keys to other slots, if they stood in them. */
const BRACED = ['a}b{c', '{', '}{', 'a{b}c', '{}', '}', 'x{y'].map((name) => `${name}@example.com`);

const inbox = openInbox(t);
const [plain, copied] = await Promise.all([ownCluster(t), ownCluster(t, { replicas: 1, partly: false })]);
const settings = { ...inbox.settings, DELETION_VALIDATORS: 'wallet:required', LIMIT_REFRESH_SESSION: '100/60', HASH_QUEUE_MS: '10000' };
const service = await startNodes(t, 2, { ...settings, REDIS_URL: plain.url });
const [here, there] = [service.nodes[0]!, service.nodes[1]!];

/** For each primary an account whose logins it counts. */
async function spread({ needs, account }: Pick<Nodes, 'needs' | 'account'>, cluster: OwnCluster): Promise<Account[]> {
  const found: Account[] = [];
  while (PRIMARIES.some((i) => !found[i])) {
    const email = `${randomUUID()}@example.com`;
    const i = await cluster.primaryOf(KEYS.gate(identityOf(needs.keyring, email), null));
    found[i] ??= await account({ email });
  }
  return found;
}

const served = async (t: Test, accounts: Account[]): Promise<void> => {
  for (const { email, password } of accounts) t.equal((await there.client().login(email, password)).status, 200, 'whom another primary serves notices nothing');
};

t.test('logins, lockout and refresh work wherever in the cluster an account is counted, on every node alike', async (t) => {
  for (const { email, password } of await spread(service, plain)) {
    const { body } = await here.client().login(email, password);
    t.equal((await there.client().refresh(body['refreshToken'])).status, 200);
    const guesses: Answer[] = [];
    for (let i = 0; i < 5; i += 1) {
      await until(async () => {
        const answer = await [here, there][i % 2]!.client({ ip: '203.0.113.9' }).login(email, WRONG);
        if (answer.body['code'] === 'LOGIN_THROTTLED') return false;
        guesses.push(answer);
        return true;
      });
    }
    t.same(tally(guesses), { INVALID_CREDENTIALS: 5 });
    for (const node of [here, there]) t.match(await node.client({ ip: '203.0.113.9' }).login(email, password), { body: { code: 'ACCOUNT_LOCKED' } });
  }
});

t.test('a deletion is asked of, and told to, services that listen at any node of the cluster', async (t) => {
  const wallet = await otherService(t, plain.url, 'wallet');
  const heard = await Promise.all(plain.primaries.map(({ url }) => listenAt(t, url)));
  const owner = await signedIn({ account: service.account, client: here.client }, inbox);
  wallet.object('active booking');
  t.match(await owner.delete(await owner.deletionCode()), { status: 409 });
  wallet.object(undefined);
  t.match(await owner.delete(await owner.deletionCode()), { status: 200 });
  const expected = ['identity.user.deleted', 'identity.user.pre_deletion_validate', 'identity.user.pre_deletion_validate'];
  await until(async () => heard.every((channels) => channels.includes('identity.user.deleted')));
  for (const channels of heard) t.same(channels.filter((channel) => expected.includes(channel)).sort(), expected, 'each once at every primary');
  t.equal((await wallet.streamed()).filter(({ type }) => type === 'identity.user.deleted').length, 1);
});

/** The channels of what is heard at one node of the cluster from now on. */
async function listenAt(t: Test, url: string): Promise<string[]> {
  const client = dial(url);
  t.teardown(() => client.disconnect());
  const channels: string[] = [];
  client.on('pmessage', (_pattern: string, channel: string) => channels.push(channel));
  await client.psubscribe('identity.*');
  return channels;
}

for (const { name, mostMs: bound, start, end } of [
  { name: 'killed', mostMs: 250, start: (i: number) => plain.primaries[i]!.stop(), end: async (i: number) => void (plain.primaries[i] = await plain.restart(plain.primaries[i]!)) },
  { name: 'hung', mostMs: 1000, start: async (i: number) => void process.kill(plain.primaries[i]!.pid, 'SIGSTOP'), end: async (i: number) => void process.kill(plain.primaries[i]!.pid, 'SIGCONT') },
]) {
  t.test(`with one primary ${name}, only logins that it counts are 503, refresh and the others are served, and all is back within 5 s`, { timeout: 100_000 }, async (t) => {
    const mostMs = atMost(bound);
    const accounts = await spread(service, plain);
    const { email, password } = accounts[1]!;
    const others = [accounts[0]!, accounts[2]!];
    const { body } = await here.client().login(email, password);
    await start(1);
    for (let round = 0; round < 8; round += 1) {
      const { value, ms } = await timed(() => here.client().login(email, round % 2 ? password : WRONG));
      t.match(value, UNAVAILABLE);
      t.ok(ms <= mostMs, `503 after ${ms.toFixed(0)} ms of ${mostMs}`);
      await served(t, others);
    }
    const crowd = await timed(() => Promise.all(Array.from({ length: 50 }, () => here.client().login(email, password))));
    t.same(tally(crowd.value), { UNAVAILABLE: 50 });
    t.ok(crowd.ms <= mostMs * 2, `fifty of them within ${crowd.ms.toFixed(0)} ms`);
    t.equal((await there.client().refresh(body['refreshToken'])).status, 200);
    t.equal((await here.client().request('GET', '/health/ready')).status, 200, 'the node is ready: no other would serve more');
    t.match(await here.client().request('POST', '/api/auth/account/restore-request', { body: { email: others[0]!.email } }), { status: 503 }, 'what follows a reply unseen could not be done');

    await end(1);
    for (const node of [here, there]) t.comment(`back after ${(await until(async () => (await node.client().login(email, password)).status === 200, BACK_MS)).toFixed(0)} ms`);
    await served(t, others);
  });
}

t.test('when a killed primary is replaced, logins are 503 until then and no guesses are gained beyond those it had not passed on', { timeout: 60_000 }, async (t) => {
  const { nodes, account, needs } = await startNodes(t, 2, { ...settings, REDIS_URL: copied.url, LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '5,5,5' });
  const [accounts, [victim], [locked]] = [await spread({ account, needs }, copied), await spread({ account, needs }, copied), await spread({ account, needs }, copied)] as [Account[], [Account], [Account]];
  const guess = (email: string, i: number) => nodes[i % 2]!.client({ ip: '198.51.100.7' }).login(email, WRONG);
  for (let i = 0; i < 3; i += 1) await guess(victim.email, i);
  for (let i = 0; i < 5; i += 1) await guess(locked.email, i);
  const codes: Record<string, number> = {};
  const note = (what: string): number => (codes[what] = (codes[what] ?? 0) + 1);
  let [over, firstBack] = [false, 0];
  const startedAt = performance.now();
  const [{ accessToken }] = [(await nodes[0]!.client().login(accounts[0]!.email, accounts[0]!.password)).body as { accessToken: string }];
  const users = Array.from({ length: USERS }, async (_, i) => {
    while (!over) {
      const { email, password } = accounts[i % 3]!;
      const client = nodes[i % 2]!.client({ ip: `192.0.2.${i}` });
      const answer = i === 0 ? await guess(victim.email, i) : i < 12 ? await client.login(email, password) : await client.profile(accessToken);
      note(`${answer.status} ${(answer.body['code'] as string | undefined) ?? 'OK'}`);
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
  });
  await new Promise((resolve) => setTimeout(resolve, scaled(0, 2000)));
  const killedAt = performance.now();
  await copied.primaries[0]!.stop();
  await until(async () => {
    const { status } = await nodes[0]!.client({ ip: '192.0.2.99' }).login(accounts[0]!.email, accounts[0]!.password);
    if (status === 200) firstBack = performance.now() - killedAt;
    return status === 200;
  }, atMost(2 * NODE_TIMEOUT_MS + 2000));
  await new Promise((resolve) => setTimeout(resolve, scaled(0, 2000)));
  over = true;
  await Promise.all(users);
  const asked = Object.values(codes).reduce((sum, n) => sum + n, 0);
  const rate = asked / ((performance.now() - startedAt) / 1000);
  t.comment(JSON.stringify(codes));
  const others = Object.keys(codes).filter((code) => !['200 OK', '401 INVALID_CREDENTIALS', '429 ACCOUNT_LOCKED', '429 LOGIN_THROTTLED', '503 UNAVAILABLE'].includes(code));
  t.same(others, []);
  await until(async () => (await guess(victim.email, 1)).body['code'] === 'ACCOUNT_LOCKED');
  const guessed = await verifiedGuesses(needs.mysql, victim.id);
  const crossed = await errorsOf([...copied.primaries.slice(1), ...copied.replicas], 'CROSSSLOT');
  const [mostMs, fine] = [2 * NODE_TIMEOUT_MS + 2000, others.length === 0 && crossed === 0 && guessed <= 10];
  figure(t, 'T61', { did: `a primary of a cluster of 3 + 3 killed with -9 amid ${asked} requests, ${rate.toFixed(0)} a second`, figure: `${codes['503 UNAVAILABLE'] ?? 0} × 503, ${others.length} kinds of other errors, ${crossed} CROSSSLOT; a replica served after ${firstBack.toFixed(0)} ms of ${mostMs}; ${Math.max(0, guessed - 5)} guesses gained (5 at most)`, ok: fine && firstBack <= mostMs + 500 });
  t.match(await guess(locked.email, 0), { body: { code: 'ACCOUNT_LOCKED' } }, 'a lock outlives the primary that knew it');
  t.equal(await verifiedGuesses(needs.mysql, locked.id), 5);
});

t.test('an address with braces is counted like any other, and no key of all this names an address or lacks its hash tag', async (t) => {
  const statuses = new Set<number>();
  for (const email of BRACED) {
    await service.account({ email, password: 'in braces' });
    const { status, body } = await here.client().login(email, 'in braces');
    const bearer = { authorization: `Bearer ${body['accessToken'] as string}` };
    const answers = [
      await there.client().refresh(body['refreshToken']),
      await there.client().request('POST', '/api/auth/account/delete-request', { headers: bearer }),
      await here.client({ ip: '203.0.113.50' }).login(email, WRONG),
      await here.client({ ip: '203.0.113.51' }).login(`${email}x`, WRONG),
      await here.client().request('POST', '/api/auth/account/restore-request', { body: { email } }),
    ];
    t.same([status, ...answers.map((answer) => answer.status)], [200, 200, 204, 401, 401, 204], email);
    for (const answer of answers) statuses.add(answer.status);
  }
  let [seen, bad] = [0, 0];
  for (const { url } of plain.primaries) {
    const client = dial(url);
    t.teardown(() => client.disconnect());
    const keys = await client.keys('*');
    t.ok(keys.length > 0, 'each primary has some');
    const wrong = keys.filter((key) => !(key === KEYS.events || /^idp:\{(idp:events|[\w-]+)\}:/.test(key)) || /@|example/.test(key));
    t.same(wrong, []);
    [seen, bad] = [seen + keys.length, bad + wrong.length];
  }
  const crossed = await errorsOf(plain.primaries, 'CROSSSLOT');
  figure(t, 'T45', { did: `${BRACED.length} addresses such as ${BRACED[0]!} on a cluster of 3: login, guess, refresh, deletion code, restore; then all ${seen} keys`, figure: `${crossed} CROSSSLOT, ${bad} keys with an address or without a hash tag, no reply of ${[...statuses].filter((status) => status >= 500).join(', ') || '5xx'}`, ok: crossed === 0 && bad === 0 });
});
