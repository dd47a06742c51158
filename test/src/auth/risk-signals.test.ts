import t, { type Test } from 'tap';
import { addTotp } from '../../support/accounts.js';
import { startApp, type TestApp } from '../../support/app.js';
import { codeOf, WRONG } from '../../support/attempts.js';
import { mmdb, mmdbFile } from '../../support/mmdb.js';
import { startNodes } from '../../support/nodes.js';
import { until } from '../../support/patience.js';

const GEOIP_FILE = mmdbFile(t, mmdb({ '192.0.2.0/25': { country: 'DE', at: [52.52, 13.4] }, '192.0.2.128/25': { country: 'DE', at: [48.14, 11.58] }, '198.51.100.0/24': { country: 'US', at: [40.71, -74.01] }, '2001:db8::/32': { country: 'JP', at: [35.68, 139.77] } }));
const BERLIN = '192.0.2.1';
const MUNICH = '192.0.2.200';
const NEW_YORK = '198.51.100.1';
const TOKYO = '2001:db8::1';
const NOWHERE = '10.1.2.3';

interface Entry {
  action: string;
  status: string;
  country: string | null;
  sessionId: string | null;
  risks: string[];
}

interface Message {
  type: string;
  userId: string;
  sessionId: string;
  risks: string[];
  ipAddress: string;
  country: string | null;
}

async function traveller(t: Test, service: TestApp) {
  const { mysql } = service.app.needs;
  const account = await service.account();
  const login = async (ip: string, userAgent = 'browser 1.0', headers: Record<string, string> = {}): Promise<void> => {
    t.equal(codeOf(await service.client({ ip, userAgent }).login(account.email, account.password, 'json', headers)), 'OK');
  };
  const audit = async (): Promise<Entry[]> =>
    (await mysql.rows<Omit<Entry, 'risks'> & { detail: string | null }>('SELECT action, status, country, session_id AS sessionId, detail FROM audit_log WHERE user_id = ? ORDER BY id', [account.id])).map(({ detail, ...entry }) => ({
      ...entry,
      risks: detail === null ? [] : ((JSON.parse(detail) as { risks?: string[] }).risks ?? []),
    }));
  const events = async (): Promise<Message[]> => (await mysql.rows<{ message: string }>('SELECT message FROM event_outbox WHERE user_id = ? ORDER BY seq', [account.id])).map(({ message }) => JSON.parse(message) as Message);
  const age = (hours: number): Promise<unknown> => mysql.run('UPDATE login_places SET last_seen_at = last_seen_at - INTERVAL ? HOUR WHERE user_id = ?', [hours, account.id]);
  return { ...account, login, audit, events, age, risksOfLast: async (): Promise<string[]> => (await audit()).at(-1)!.risks };
}

t.test('with a file of places', async (t) => {
  const service = await startApp(t, { GEOIP_FILE });
  const { mysql, redis } = service.app.needs;

  t.test('a new country and a journey that nobody can have made are signals of a login, as are a new network and device', async (t) => {
    const owner = await traveller(t, service);
    await owner.login(BERLIN);
    t.same(await owner.risksOfLast(), [], 'a first login has nothing to differ from');
    await owner.login(BERLIN);
    t.same(await owner.risksOfLast(), []);
    await owner.login(NEW_YORK);
    t.same(await owner.risksOfLast(), ['new_network', 'new_country', 'impossible_travel']);
    await owner.login(BERLIN);
    t.same(await owner.risksOfLast(), ['impossible_travel'], 'back at once');
    await owner.age(24);
    await owner.login(TOKYO);
    t.same(await owner.risksOfLast(), ['new_network', 'new_country'], 'a day later');
    await owner.age(24);
    await owner.login(NEW_YORK, 'another browser');
    t.same(await owner.risksOfLast(), ['new_device']);
    await owner.login(NOWHERE);
    t.same(await owner.risksOfLast(), ['new_network'], 'an address without a place');
    t.same((await owner.audit()).map(({ country }) => country), ['DE', 'DE', 'US', 'DE', 'JP', 'US', null]);
  });

  t.test('within a country the last position counts', async (t) => {
    const owner = await traveller(t, service);
    await owner.login(BERLIN);
    await owner.login(MUNICH);
    t.same(await owner.risksOfLast(), ['new_network', 'impossible_travel'], '500 km in a moment');
    await owner.login(MUNICH);
    t.same(await owner.risksOfLast(), []);
    t.same(await mysql.rows('SELECT country FROM login_places WHERE user_id = ?', [owner.id]), [{ country: 'DE' }]);
  });

  t.test('signals go out as one event for each such login, and none for others', async (t) => {
    const owner = await traveller(t, service);
    await owner.login(BERLIN);
    await owner.login(BERLIN);
    t.same(await owner.events(), []);
    await owner.login(NEW_YORK);
    const { sessionId } = (await owner.audit()).at(-1)!;
    t.same(await mysql.rows('SELECT user_id AS userId FROM sessions WHERE id = ?', [sessionId]), [{ userId: owner.id }]);
    const [event, ...more] = await owner.events();
    t.match(event, { type: 'identity.user.risk_detected', userId: owner.id, sessionId, risks: ['new_network', 'new_country', 'impossible_travel'], ipAddress: NEW_YORK, country: 'US' });
    t.same(more, []);
    const published = async (): Promise<Message[]> => (await redis.xrange('idp:events', '-', '+')).map(([, fields]) => JSON.parse(fields[1]!) as Message).filter(({ userId }) => userId === owner.id);
    await until(async () => (await published()).length > 0);
    t.same(await published(), [event]);
  });

  t.test('a login of many accounts at once tells each of its own', async (t) => {
    const owners = await Promise.all(Array.from({ length: 12 }, () => traveller(t, service)));
    await Promise.all(owners.map((owner) => owner.login(BERLIN)));
    await Promise.all(owners.map((owner, i) => owner.login(i % 2 === 0 ? NEW_YORK : BERLIN)));
    for (const [i, owner] of owners.entries()) {
      const events = await owner.events();
      t.equal(events.length, i % 2 === 0 ? 1 : 0);
      for (const event of events) t.equal(event.sessionId, (await owner.audit()).at(-1)!.sessionId);
    }
  });

  t.test('logins of one account at once all succeed and leave one place', async (t) => {
    const owner = await traveller(t, service);
    await Promise.all(Array.from({ length: 40 }, () => owner.login(BERLIN)));
    t.same(await mysql.rows('SELECT country FROM login_places WHERE user_id = ?', [owner.id]), [{ country: 'DE' }]);
  });

  t.test('a second factor is watched the same, and failures leave a country and no signal', async (t) => {
    const owner = await traveller(t, service);
    await owner.login(BERLIN);
    const code = await addTotp(service.app.needs, owner.id);
    const away = service.client({ ip: NEW_YORK, userAgent: 'browser 1.0' });
    await away.login(owner.email, WRONG);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { mfaToken } = (await away.login(owner.email, owner.password)).body;
    t.equal(codeOf(await away.request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method: 'totp', code: code() } })), 'OK');
    const [, failed, challenged, confirmed] = await owner.audit();
    t.match(failed, { action: 'login', status: 'failure', country: 'US', sessionId: null, risks: [] });
    t.match(challenged, { action: 'login', status: 'success', country: 'US', sessionId: null, risks: [] });
    t.match(confirmed, { action: 'mfa', status: 'success', country: 'US', risks: ['new_network', 'new_country', 'impossible_travel'] });
    t.equal((await owner.events()).length, 1);
  });

  t.test('a header that names a place is not read when none was set', async (t) => {
    const owner = await traveller(t, service);
    await owner.login(NOWHERE, 'browser 1.0', { 'cf-ipcountry': 'US' });
    t.equal((await owner.audit()).at(-1)!.country, null);
  });
});

t.test('a header counts when a trusted proxy sends it, never from the client', async (t) => {
  const trusting = await startApp(t, { GEO_HEADER: 'X-Client-Geo' });
  const owner = await traveller(t, trusting);
  const at = (geo: string): Record<string, string> => ({ 'x-client-geo': geo });
  await owner.login(NOWHERE, undefined, at('DE;52.52,13.40'));
  await owner.login(NOWHERE, undefined, at('US;40.71,-74.01'));
  t.same(await owner.risksOfLast(), ['new_country', 'impossible_travel']);
  await owner.login(NOWHERE, undefined, at('nonsense'));
  t.match((await owner.audit()).at(-1), { country: null, risks: [] });

  const wary = await startApp(t, { GEO_HEADER: 'X-Client-Geo', TRUSTED_PROXIES: '10.0.0.0/8' });
  const other = await traveller(t, wary);
  await other.login(NOWHERE, undefined, at('DE'));
  await other.login(NOWHERE, undefined, at('US'));
  t.same((await other.audit()).map(({ country, risks }) => [country, risks]), [[null, []], [null, []]]);
});

t.test('the log line of a login says country and signals, and no node starts with a broken file', async (t) => {
  const { nodes, account, start } = await startNodes(t, 1, { GEOIP_FILE });
  const { email, password } = await account();
  for (const ip of [BERLIN, NEW_YORK]) await nodes[0]!.client({ ip }).login(email, password);
  const lines = () => nodes[0]!.output().split('\n').filter((line) => line.includes('"signed in"')).map((line) => JSON.parse(line) as Record<string, unknown>);
  await until(async () => lines().length === 2);
  t.match(lines(), [{ country: 'DE', risks: [] }, { country: 'US', risks: ['new_network', 'new_country', 'impossible_travel'] }]);
  await t.rejects(start({ GEOIP_FILE: mmdbFile(t, Buffer.from('no database')) }), { message: /GEOIP_FILE .* cannot be used: it is no MMDB database/ });
});
