import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { crashAmidDeletions, faultsOf, figureOf } from '../support/crash.js';
import { figure, scaled } from '../support/figures.js';
import { startNodes } from '../support/nodes.js';
import { PATIENCE_MS } from '../support/patience.js';
import { brokenBuild } from '../support/racy.js';

/** More at a time: `npm run bench -- crash`. */
const DELETIONS = scaled(80, 240);
const AT_ONCE = 20;

t.test('a node killed amid deletions leaves each account whole: active without an event, or deleted with one that is published', async (t) => {
  const crashes = await crashAmidDeletions(t, await startNodes(t, 1), DELETIONS, AT_ONCE);
  const { accounts, node } = crashes;
  t.comment(figureOf(crashes));
  t.equal(accounts.length, DELETIONS);
  t.ok(accounts.some((one) => one.deleted) && accounts.some((one) => !one.deleted), 'the kills came amid the deletions');
  const faults = faultsOf(crashes);
  t.same(faults, []);
  figure(t, 'T34', { did: `${DELETIONS} deletions, the node killed with -9 amid them`, figure: figureOf(crashes), ok: faults.length === 0 });

  // The node that held the claim is dead: once it has lapsed the code is good again.
  const survivor = accounts.find((one) => !one.deleted)!;
  let status = 0;
  for (const started = performance.now(); performance.now() - started < PATIENCE_MS && status !== 200; ) {
    status = (await node.client().request('DELETE', '/api/auth/account', { headers: survivor.bearer, body: { otp: survivor.code } })).status;
    if (status !== 200) await sleep(250);
  }
  t.equal(status, 200);
});

// Where events are missing it waits for them in vain, which is too long for every day.
t.test('without its transaction a deletion that is killed is half done', { skip: scaled(1, 0) === 1 && 'in the full run', timeout: 300_000 }, async (t) => {
  const main = brokenBuild(t, 'dist/src/account/deletion.js', 'return mysql.transaction(async (tx) => {\n        const deletedAt', 'return ((work) => work(mysql))(async (tx) => {\n        const deletedAt');
  let faults: string[] = [];
  // A kill has to fall between two statements, which it may miss.
  for (let tries = 0; tries < 5 && faults.length === 0; tries += 1) faults = faultsOf(await crashAmidDeletions(t, await startNodes(t, 1, {}, main), 80, AT_ONCE));
  t.ok(faults.length > 0, faults[0] ?? 'none');
});

t.test('whatever goes wrong in a crash is found', async (t) => {
  const one = { id: 'a', email: '', password: '', code: '', bearer: {}, answered: true, deleted: true, live: 0, outbox: 1, audited: 1, messages: 1, onStream: ['e'], onChannel: ['e', 'e'] };
  const found = (over: Partial<typeof one>): number => faultsOf({ accounts: [{ ...one, ...over }], kills: 1, node: null as never }).length;
  t.equal(found({}), 0);
  const broken: Partial<typeof one>[] = [{ live: 1 }, { outbox: 0 }, { outbox: 2 }, { audited: 0 }, { messages: 0 }, { onStream: [] }, { onChannel: [] }, { onStream: ['e', 'f'] }, { onChannel: ['f'] }];
  for (const over of broken) t.equal(found(over), 1, JSON.stringify(over));
  const untouched = { answered: false, deleted: false, live: 1, outbox: 0, audited: 0, messages: 0, onStream: [], onChannel: [] };
  t.equal(found(untouched), 0);
  for (const over of [{ answered: true }, { live: 0 }, { outbox: 1 }, { onStream: ['e'] }]) t.equal(found({ ...untouched, ...over }), 1, JSON.stringify(over));
});
