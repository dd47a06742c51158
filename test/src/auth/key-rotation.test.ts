import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { ensureKeys, revoke, rotate, upkeep } from '../../../src/auth/key-rotation.js';
import { KEY_TIMES } from '../../../src/auth/key-times.js';
import { openSigningKeys } from '../../../src/auth/signing-keys.js';
import { insertKey, listKeys } from '../../../src/store/signing-keys.js';
import { signJws } from '../../../workers/jws.js';
import { age, keyNode, kidsIn, type KeyNode } from '../../support/keys.js';
import type { Teardown } from '../../support/stores.js';

const LEAD_S = KEY_TIMES.leadMs / 1000;
const HOLD_S = KEY_TIMES.holdMs / 1000;

/** A node whose keys have been there for as long as a key is shown before it signs. */
async function settledNode(t: Teardown, settings: Record<string, string> = {}): Promise<KeyNode> {
  const node = await keyNode(t, settings);
  await ensureKeys(node, node.config.jwtAlg);
  await age(node, LEAD_S);
  return node;
}

const statesOf = async (node: KeyNode): Promise<string[]> => (await listKeys(node.mysql)).map(({ state }) => state);

t.test('the times keep their promises: no copy of the key set lacks a key that signs, and no token outlives its key', (t) => {
  t.ok(KEY_TIMES.servedMs + KEY_TIMES.maxAgeMs < KEY_TIMES.leadMs);
  t.ok(KEY_TIMES.trustMs < KEY_TIMES.holdMs);
  t.ok(KEY_TIMES.pollMs * 10 < KEY_TIMES.trustMs, 'a few readings may fail');
  t.end();
});

t.test('nodes that start at once on an empty database share one key that signs and one that comes next', async (t) => {
  const first = await keyNode(t);
  const nodes = [first, ...(await Promise.all(Array.from({ length: 4 }, () => keyNode(t, {}, first))))];
  const opened = await Promise.all(nodes.map((node) => openSigningKeys(node)));
  t.equal(new Set(opened.map((keys) => keys.current().kid)).size, 1);
  t.equal(new Set(opened.map((keys) => keys.published().body)).size, 1, 'and they show the same set');
  t.same((await statesOf(first)).sort(), ['active', 'next']);
  for (const keys of opened) keys.close();
});

t.test('a key that was shown for less than the lead does not sign, whoever wants it to, and one that was does', async (t) => {
  const node = await keyNode(t);
  await ensureKeys(node, 'ES256');
  const [active, next] = [(await kidsIn(node, 'active'))[0]!, (await kidsIn(node, 'next'))[0]!];
  await age(node, LEAD_S - 60);
  t.match(await rotate(node), { kind: 'waiting', to: next });
  await upkeep(node);
  t.same(await kidsIn(node, 'active'), [active], 'nor is it used because it is wanted');
  await age(node, 60);
  await upkeep(node);
  t.same(await kidsIn(node, 'active'), [next], 'a wish is kept until it can be met');
  t.same(await kidsIn(node, 'retiring'), [active]);
  t.equal((await kidsIn(node, 'next')).length, 1, 'and another key is shown for the next time');
  await upkeep(node);
  t.same(await kidsIn(node, 'active'), [next], 'once');
});

t.test('of rotations on many nodes at once one wins', async (t) => {
  const first = await settledNode(t);
  const nodes = [first, ...(await Promise.all(Array.from({ length: 4 }, () => keyNode(t, {}, first))))];
  const outcomes = (await Promise.all(nodes.map((node) => rotate(node)))).map(({ kind }) => kind);
  t.equal(outcomes.filter((kind) => kind === 'rotated').length, 1, outcomes.join());
  t.same((await statesOf(first)).sort(), ['active', 'next', 'retiring']);
});

t.test('a key takes over after JWT_ROTATE_DAYS and not before; with 0 never by itself', async (t) => {
  const node = await settledNode(t, { JWT_ROTATE_DAYS: '1' });
  const never = { ...node, config: { ...node.config, jwtRotateDays: 0 } };
  const [active] = await kidsIn(node, 'active');
  await age(node, 86_400 - LEAD_S - 60);
  await upkeep(node);
  t.same(await kidsIn(node, 'active'), [active]);
  await age(node, 61);
  await upkeep(never);
  t.same(await kidsIn(node, 'active'), [active]);
  await upkeep(node);
  t.same(await kidsIn(node, 'retiring'), [active]);
});

t.test('a key is retired once the longest token of any node has ended, and not before', async (t) => {
  const node = await settledNode(t, { ACCESS_TTL_S: '600' });
  const patient = await keyNode(t, { ACCESS_TTL_S: '7200' }, node);
  const keys = await Promise.all([openSigningKeys(node), openSigningKeys(patient)]);
  const [active] = await kidsIn(node, 'active');
  await rotate(node);
  await age(node, 7200 + HOLD_S - 60);
  await upkeep(node);
  t.same(await kidsIn(node, 'retiring'), [active], 'although all that this node signed has ended');
  await age(node, 61);
  await upkeep(node);
  t.same(await kidsIn(node, 'retired'), [active]);
  await age(node, 90 * 86_400 + 60);
  await upkeep(node);
  t.notOk((await listKeys(node.mysql)).some(({ kid }) => kid === active), 'and forgotten after 90 days');
  for (const one of keys) one.close();
});

t.test('the private part of a key goes when it stops signing', async (t) => {
  const node = await settledNode(t);
  await rotate(node);
  for (const { state, privateKey } of await listKeys(node.mysql)) t.equal(privateKey === null, state === 'retiring', state);
});

t.test('another JWT_ALG is shown first and used later, whichever nodes run with which', async (t) => {
  const before = await settledNode(t);
  const [active] = await kidsIn(before, 'active');
  const after = await keyNode(t, { JWT_ALG: 'EdDSA' }, before);
  const keys = await openSigningKeys(after);
  t.equal(keys.current().kid, active, 'the node signs like the others');
  const [next] = await kidsIn(after, 'next');
  t.match(keys.published().body, `"kid":"${next!}","alg":"EdDSA"`);
  await upkeep(before);
  t.same(await kidsIn(after, 'next'), [next], 'a node of before does not take it back');
  await age(before, LEAD_S);
  await upkeep(before);
  await keys.reread();
  t.match(keys.current(), { kid: next, alg: 'EdDSA' }, 'nobody had to ask for it');
  t.match(decodeProtectedHeader(signJws({ ...keys.current(), claims: {} })), { alg: 'EdDSA', kid: next });
  t.ok(await keys.find(active!), 'tokens of the former algorithm stay good');
  t.same((await listKeys(after.mysql)).filter(({ state }) => state === 'next').map(({ alg }) => alg), ['EdDSA'], 'and it stays so');
  keys.close();
});

t.test('nodes of two algorithms that start at once come to an end', async (t) => {
  const node = await settledNode(t);
  const [one, other] = await Promise.all([keyNode(t, { JWT_ALG: 'EdDSA' }, node), keyNode(t, {}, node)]);
  await Promise.all(Array.from({ length: 6 }, (_, i) => ensureKeys(i % 2 ? one : other, i % 2 ? 'EdDSA' : 'ES256')));
  t.same((await statesOf(node)).filter((state) => state !== 'retired').sort(), ['active', 'next']);
});

t.test('a revoked key is gone at once; the one that comes next has been shown and signs', async (t) => {
  const node = await settledNode(t);
  const keys = await openSigningKeys(node);
  const leaked = keys.current().kid;
  const [next] = await kidsIn(node, 'next');
  t.same(await revoke(node), { revoked: [leaked], signing: next!, early: false });
  await keys.reread();
  t.equal(keys.current().kid, next);
  t.notOk(keys.knows(leaked));
  t.equal(await keys.find(leaked), null);
  t.notMatch(keys.published().body, leaked);
  t.match(await revoke(node), { revoked: [next], early: true }, 'the one after it has just been made');
  keys.close();
});

t.test('a key that was replaced before its leak was seen is revoked by name, and nothing else changes', async (t) => {
  const node = await settledNode(t);
  const [leaked] = await kidsIn(node, 'active');
  await rotate(node);
  const [active] = await kidsIn(node, 'active');
  t.match(await revoke(node, leaked), { revoked: [leaked], signing: active });
  t.same(await kidsIn(node, 'retired'), [leaked]);
  t.match(await revoke(node, leaked), { revoked: [], signing: active }, 'twice is once');
});

t.test('all keys can be revoked; their successors were made afterwards', async (t) => {
  const node = await settledNode(t);
  await rotate(node);
  const former = (await listKeys(node.mysql)).map(({ kid }) => kid);
  const { revoked, signing, early } = await revoke(node, 'all');
  t.same(revoked.sort(), former.sort());
  t.notOk(former.includes(signing));
  t.ok(early);
  t.same((await statesOf(node)).sort(), ['active', 'next', 'retired', 'retired', 'retired']);
});

t.test('revocations and rotations at once leave one key that signs and one that comes next', async (t) => {
  const first = await settledNode(t);
  const nodes = [first, ...(await Promise.all(Array.from({ length: 3 }, () => keyNode(t, {}, first))))];
  for (let round = 0; round < 5; round += 1) {
    await age(first, LEAD_S);
    const [leaked] = await kidsIn(first, 'active');
    await Promise.all([revoke(nodes[0]!, leaked), rotate(nodes[1]!), revoke(nodes[2]!, leaked), upkeep(nodes[3]!)]);
    t.ok((await kidsIn(first, 'retired')).includes(leaked!), 'whatever came first, the leaked one is gone');
    t.same((await statesOf(first)).filter((state) => state === 'active' || state === 'next').sort(), ['active', 'next']);
  }
});

t.test('a next key that this SECRET_KEY does not open never takes over', async (t) => {
  const node = await settledNode(t);
  const [next] = await kidsIn(node, 'next');
  await node.mysql.run("UPDATE signing_keys SET private_key = REVERSE(private_key) WHERE state = 'next'");
  await t.rejects(rotate(node), /SECRET_KEY is not the one/);
  await t.rejects(revoke(node), /SECRET_KEY is not the one/);
  t.same(await kidsIn(node, 'next'), [next]);
  t.equal((await kidsIn(node, 'active')).length, 1);
});

t.test('a place is given once, and RS256 keys have 2048 bits', async (t) => {
  const node = await keyNode(t, { JWT_ALG: 'RS256' });
  const [active] = await ensureKeys(node, 'RS256');
  t.notOk(await insertKey(node.mysql, { ...active!, kid: 'x', state: 'next', privateKey: Buffer.alloc(1) }));
  const keys = await openSigningKeys(node);
  const set = JSON.parse(keys.published().body) as { keys: { n: string }[] };
  for (const { n } of set.keys) t.ok(Buffer.from(n, 'base64url').length >= 256);
  keys.close();
});
