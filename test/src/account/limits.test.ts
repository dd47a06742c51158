import t, { type Test } from 'tap';
import { startApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { figure } from '../../support/figures.js';
import { openInbox } from '../../support/inbox.js';
import { count } from '../../support/otp.js';
import { signedIn } from '../../support/owner.js';

/** The limits as they are without any setting. */
const inbox = openInbox(t);
const service = await startApp(t, { ...inbox.settings, LIMIT_DELETE_REQUEST: '3/300', LIMIT_DELETE: '5/300', LIMIT_RESTORE_REQUEST: '3/300', LIMIT_RESTORE: '5/300' });
const PREFIXES = ['/api/auth/account', '/auth/account'];

/** Sends n requests at once, half of them below each prefix, and gives how many were let through. */
async function letThrough(t: Test, n: number, send: (prefix: string) => Promise<Answer>): Promise<number> {
  const answers = await Promise.all(Array.from({ length: n }, (_, i) => send(PREFIXES[i % 2]!)));
  for (const refused of answers.filter(({ status }) => status === 429)) {
    t.equal(refused.body['code'], 'RATE_LIMITED');
    t.ok(Number(refused.body['retryAfter']) > 290 && Number(refused.body['retryAfter']) <= 300);
    t.equal(refused.headers.get('retry-after'), String(refused.body['retryAfter']));
  }
  return n - count(answers.map(({ status }) => status), 429);
}

t.test('three deletion codes and five deletions in five minutes, per account, over both prefixes', async (t) => {
  const [a, b] = [await signedIn(service, inbox), await signedIn(service, inbox)];
  const codes = await letThrough(t, 10, (prefix) => a.requestDeletion(prefix));
  t.equal(codes, 3);
  t.equal(await letThrough(t, 4, (prefix) => b.requestDeletion(prefix)), 3, 'another account has its own');
  const deletions = await letThrough(t, 12, (prefix) => a.delete('00000000', prefix));
  t.equal(deletions, 5);
  figure(t, 'T11', { did: '10 deletion codes and 12 deletions at once over both prefixes, limits 3 and 5 in 300 s', figure: `${codes} and ${deletions} let through`, ok: codes === 3 && deletions === 5 });
  t.equal(await letThrough(t, 6, (prefix) => b.delete('00000000', prefix)), 5);
});

t.test('three restore codes and five restores in five minutes, per client address, whatever the account', async (t) => {
  const from = (ip: string, path: string) => (prefix: string) => service.client({ ip }).request('POST', `${prefix}/${path}`, { body: { email: `${Math.random()}@example.com`, otp: '00000000' } });
  t.equal(await letThrough(t, 10, from('198.51.100.1', 'restore-request')), 3);
  t.equal(await letThrough(t, 12, from('198.51.100.1', 'restore')), 5);
  t.equal(await letThrough(t, 5, from('198.51.100.2', 'restore-request')), 3);
  t.equal(await letThrough(t, 6, from('192.0.2.66, 198.51.100.1', 'restore')), 0, 'what the client itself puts in front changes nothing');
  t.equal(await letThrough(t, 6, from('2001:db8:1:2:3::1', 'restore')), 5);
  t.equal(await letThrough(t, 2, from('2001:db8:1:2:ffff::9', 'restore')), 0, 'IPv6 counts by its /64');
});

t.test('a request that is malformed counts, one that is not signed in does not', async (t) => {
  const owner = await signedIn(service, inbox);
  const malformed = (prefix: string) => owner.client.request('DELETE', prefix, { headers: owner.bearer, body: {} });
  const strangers = await Promise.all(PREFIXES.map((prefix) => service.client().request('DELETE', prefix, { body: { otp: '00000000' } })));
  t.same(strangers.map(({ status }) => status), [401, 401]);
  t.equal(await letThrough(t, 7, malformed), 5);
});
