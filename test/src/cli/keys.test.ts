import { randomBytes } from 'node:crypto';
import { v4 as uuid } from 'uuid';
import t from 'tap';
import { ensureKeys } from '../../../src/auth/key-rotation.js';
import { KEY_TIMES } from '../../../src/auth/key-times.js';
import { reseal } from '../../../src/cli/reseal.js';
import { loadConfig } from '../../../src/config/load.js';
import { createKeyring } from '../../../src/keyring.js';
import { listKeys } from '../../../src/store/signing-keys.js';
import { cli, cliOnTerminal, type Ended } from '../../support/cli.js';
import { age, keyNode, kidsIn, type KeyNode } from '../../support/keys.js';
import type { Teardown } from '../../support/stores.js';

/** A database with keys that have been shown for long enough, and the commands on it. */
async function open(t: Teardown, settled = true): Promise<{ node: KeyNode; env: Record<string, string>; keys: (...args: string[]) => Promise<Ended> }> {
  const node = await keyNode(t);
  if (settled) {
    await ensureKeys(node, 'ES256');
    await age(node, KEY_TIMES.leadMs / 1000);
  }
  const env = { MYSQL_URL: node.config.mysqlUrl, REDIS_URL: 'redis://127.0.0.1:1', SECRET_KEY: node.config.secretKey.toString('base64') };
  return { node, env, keys: (...args) => cli(env)('keys', ...args) };
}

const read = ({ out }: Ended): Record<string, unknown> => JSON.parse(out) as Record<string, unknown>;

t.test('keys list shows where each key stands, and nothing secret', async (t) => {
  const { node, keys } = await open(t);
  await keys('rotate');
  const { code, out } = await keys('list');
  t.equal(code, 0);
  const lines = out.trim().split('\n');
  t.match(lines[0], /^kid +state +alg +shown since +signs since +signed until +retired$/);
  for (const state of ['active', 'next', 'retiring'] as const) t.ok(lines.some((line) => line.slice(45).startsWith(state) && line.includes('ES256')), state);
  const listed = read(await keys('list', '--json'))['keys'] as Record<string, unknown>[];
  t.same(listed.map(({ kid }) => kid), (await listKeys(node.mysql)).map(({ kid }) => kid));
  for (const key of listed) t.same(Object.keys(key).filter((name) => /private/i.test(name)), []);
});

t.test('before the first start there is nothing to list, and rotate makes what is missing', async (t) => {
  const { keys } = await open(t, false);
  t.match(await keys('list'), { code: 0, out: /no keys yet/ });
  t.match(read(await keys('rotate', '--json')), { rotated: false, kind: 'waiting' });
  t.equal((read(await keys('list', '--json'))['keys'] as unknown[]).length, 2);
});

t.test('keys rotate lets the next key take over, and says when it cannot yet', async (t) => {
  const { node, keys } = await open(t);
  const [active, next] = [(await kidsIn(node, 'active'))[0]!, (await kidsIn(node, 'next'))[0]!];
  t.match(await keys('rotate'), { code: 0, out: `key ${next} signs now; tokens of ${active} stay good until they end\n` });
  const [after] = await kidsIn(node, 'next');
  t.match(await keys('rotate'), { code: 0, out: `key ${after!} takes over by itself in 60 min: verifiers must have seen it before\n` });
  t.same(await kidsIn(node, 'active'), [next]);
  t.ok((await listKeys(node.mysql)).find(({ kid }) => kid === after)!.wanted);
});

t.test('two rotations at once are one', async (t) => {
  const { node, keys } = await open(t);
  const results = await Promise.all([keys('rotate', '--json'), keys('rotate', '--json')]);
  t.same(results.map(({ code }) => code), [0, 0]);
  t.equal(results.filter((one) => read(one)['rotated']).length, 1);
  t.equal((await kidsIn(node, 'retiring')).length, 1);
});

t.test('keys rotate --revoke retires the key that signs, the one named, or all', async (t) => {
  const { node, keys } = await open(t);
  const [active, next] = [(await kidsIn(node, 'active'))[0]!, (await kidsIn(node, 'next'))[0]!];
  t.match(await keys('rotate', '--revoke'), { code: 0, out: `revoked ${active}; key ${next} signs now\n` });
  t.match(await keys('rotate', '--revoke', active), { code: 1, err: /no key .* whose tokens are good/ });
  const [third] = await kidsIn(node, 'next');
  t.match(await keys('rotate', '--revoke', third!, '--json'), { code: 0 });
  t.same((await kidsIn(node, 'retired')).sort(), [active, third!].sort());
  t.same(await kidsIn(node, 'active'), [next], 'one that does not sign yet is replaced');
  const all = await keys('rotate', '--revoke', 'all');
  t.match(all, { code: 0, out: /Verifiers may meet it before/ });
  t.equal((await kidsIn(node, 'retired')).length, 4);
});

t.test('with another SECRET_KEY nothing is rotated', async (t) => {
  const { node, env } = await open(t);
  const [active] = await kidsIn(node, 'active');
  const foreign = cli({ ...env, SECRET_KEY: randomBytes(32).toString('base64') });
  for (const args of [['rotate'], ['rotate', '--revoke']]) t.match(await foreign('keys', ...args), { code: 1, out: '', err: /SECRET_KEY is not the one/ });
  t.same(await kidsIn(node, 'active'), [active]);
});

t.test('each command has help; wrong usage is 2', async (t) => {
  const { keys } = await open(t, false);
  for (const command of ['list', 'rotate', 'reseal']) t.match(await keys(command, '--help'), { code: 0, out: /--json/ });
  t.match(await keys('rotate', '--help'), { out: /Clients\s+that refresh get new tokens/ });
  t.match(await keys('turn'), { code: 2 });
});

/** A database as it is under a former secret: keys, an app's secret, a message that waits, recovery codes. */
async function formerly(t: Teardown, factors = 1): Promise<{ node: KeyNode; during: Record<string, string>; after: Record<string, string>; context: { factor: string; message: string } }> {
  const { node, env } = await open(t);
  const { keyring, mysql } = node;
  const ids = Array.from({ length: factors }, () => uuid());
  for (const id of ids) await mysql.run("INSERT INTO mfa_factors (id, user_id, method, secret, verified_at) VALUES (?, ?, 'totp', ?, UTC_TIMESTAMP(3))", [id, uuid(), keyring.seal('totp-secret', Buffer.from('secret'), id)]);
  const [message, user] = [uuid(), uuid()];
  await mysql.run("INSERT INTO notification_outbox (id, template, channel, recipient, payload) VALUES (?, 'account_deleted', 'EMAIL', 'x', ?)", [message, keyring.seal('notification', Buffer.from('{}'), message)]);
  await mysql.run("INSERT INTO mfa_factors (id, user_id, method, verified_at, created_at) VALUES (?, ?, 'recovery_code', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE)", [uuid(), user]);
  await mysql.run('INSERT INTO mfa_recovery_codes (user_id, code_hash) VALUES (?, ?), (?, ?)', [user, randomBytes(32), user, randomBytes(32)]);
  const fresh = randomBytes(32).toString('base64');
  return { node, during: { ...env, SECRET_KEY: fresh, SECRET_KEY_PREVIOUS: env['SECRET_KEY']! }, after: { ...env, SECRET_KEY: fresh }, context: { factor: ids[0]!, message } };
}

t.test('keys reseal makes everything sealed independent of the former secret', async (t) => {
  const { node, during, after, context } = await formerly(t);
  const first = await cli(during)('keys', 'reseal', '--json');
  t.equal(first.code, 0, first.err);
  t.match(read(first), { checked: 4, resealed: 4, lost: 0, recoveryCodeAccounts: 1, droppable: false });
  const days = (Date.parse(read(first)['sessionsUntil'] as string) - Date.now()) / 86_400_000;
  t.ok(Math.abs(days - 14) < 0.1, `sessions of before end within ${days.toFixed(2)} days`);

  const keyring = createKeyring(Buffer.from(after['SECRET_KEY']!, 'base64'), null);
  for (const key of await listKeys(node.mysql)) t.match(keyring.open('signing-key', key.privateKey!, key.kid)!.toString(), /PRIVATE KEY/);
  const [factor] = await node.mysql.rows<{ secret: Buffer }>('SELECT secret FROM mfa_factors WHERE id = ?', [context.factor]);
  t.equal(keyring.open('totp-secret', factor!.secret, context.factor)!.toString(), 'secret');
  const [message] = await node.mysql.rows<{ payload: Buffer }>('SELECT payload FROM notification_outbox');
  t.equal(keyring.open('notification', message!.payload, context.message)!.toString(), '{}');

  const second = read(await cli(during)('keys', 'reseal', '--json'));
  t.match(second, { checked: 4, resealed: 0, lost: 0 });
  t.equal(second['sessionsUntil'], read(first)['sessionsUntil'], 'a second run finds nothing and moves no date');
  t.match(await cli(after)('keys', 'reseal', '--json'), { code: 0, out: /"resealed":0,"lost":0/ }, 'and it goes without the former secret');
});

t.test('keys reseal says when the former secret can be dropped, and what stops working then', async (t) => {
  const { node, during } = await formerly(t);
  const sentence = (await cli(during)('keys', 'reseal')).out;
  t.match(sentence, /checked 4 sealed values: 4 sealed anew, 0 cannot be opened\. SECRET_KEY_PREVIOUS can be dropped after 20/);
  t.match(sentence, /Recovery codes of 1 accounts stop working then/);
  t.match(sentence, /audit and log lines name a person by another keyed hash/);
  await node.mysql.run('UPDATE secret_changes SET settled_at = settled_at - INTERVAL 15 DAY');
  t.match((await cli(during)('keys', 'reseal')).out, /can be dropped now/);
  // As if a node had still used the former secret as its own.
  const late = uuid();
  await node.mysql.run("INSERT INTO mfa_factors (id, user_id, method, secret) VALUES (?, ?, 'totp', ?)", [late, uuid(), node.keyring.seal('totp-secret', Buffer.from('s'), late)]);
  t.match(read(await cli(during)('keys', 'reseal', '--json')), { resealed: 1, droppable: false }, 'what is found later counts anew');
});

t.test('what no secret opens is counted, left as it is, and fails the command', async (t) => {
  const { node, after } = await formerly(t);
  const before = await listKeys(node.mysql);
  const { code, out, err } = await cli(after)('keys', 'reseal', '--json');
  t.equal(code, 1);
  t.match(JSON.parse(out), { checked: 4, resealed: 0, lost: 4, droppable: false });
  t.match(err, /4 values were sealed under a secret that is neither/);
  t.same((await listKeys(node.mysql)).map(({ privateKey }) => privateKey), before.map(({ privateKey }) => privateKey));
});

t.test('many values are resealed in batches, with a bar on a terminal', async (t) => {
  const { during } = await formerly(t, 450);
  const { code, out } = await cliOnTerminal(during, ['keys', 'reseal']);
  t.equal(code, 0, out);
  t.match(out, /reseal .*100% 453 of 453 values/);
  t.match(out, /453 sealed anew/);
});

t.test('a value that changes while it is resealed keeps its change', async (t) => {
  const { node, during, context } = await formerly(t);
  const config = loadConfig({ ...during });
  const keyring = createKeyring(config.secretKey, config.secretKeyPrevious);
  const renewed = keyring.seal('totp-secret', Buffer.from('enrolled anew'), context.factor);
  let transactions = 0;
  const mysql: KeyNode['mysql'] = {
    ...node.mysql,
    async transaction(work) {
      // Between the look at the factors and their transaction, which is the one after that of the keys.
      transactions += 1;
      if (transactions === 2) await node.mysql.run('UPDATE mfa_factors SET secret = ? WHERE id = ?', [renewed, context.factor]);
      return node.mysql.transaction(work);
    },
  };
  await reseal({ mysql, keyring, config }, () => undefined);
  const [factor] = await node.mysql.rows<{ secret: Buffer }>('SELECT secret FROM mfa_factors WHERE id = ?', [context.factor]);
  t.same(factor!.secret, renewed);
});
