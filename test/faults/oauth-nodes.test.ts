import t from 'tap';
import { startNodes } from '../support/nodes.js';
import { APP_URI, fragmentOf, oauthSettings, openBrowser, startOidc } from '../support/oidc.js';
import { until } from '../support/patience.js';

t.test('a flow begun on one node ends on any, once, and no log names whom or what it was about', async (t) => {
  const oidc = await startOidc(t);
  const { nodes, needs } = await startNodes(t, 2, { ...oauthSettings(t, oidc), PUBLIC_URL: 'http://id.test', LOG_LEVEL: 'debug', OAUTH_TIMEOUT_MS: '3000' });
  await oidc.register('http://id.test/api/auth/oauth/test/callback');
  const email = 'marked-person@example.com';
  oidc.people['marked-subject'] = { email, email_verified: true, given_name: 'Markedname' };
  const secrets = [email, 'marked-subject', 'Markedname', 'the client'];

  async function race(person: string) {
    const browser = openBrowser(person);
    const first = await browser.visit(`${nodes[0]!.base}/api/auth/oauth/test?redirect_uri=${encodeURIComponent(APP_URI)}&state=marked-state`);
    const answer = new URL(await browser.follow(first.location!, 'http://id.test'));
    secrets.push(answer.searchParams.get('state')!, answer.searchParams.get('code') ?? 'marked-state');
    const tries = await Promise.all(Array.from({ length: 12 }, (_, i) => browser.visit(nodes[i % 2]!.base + answer.pathname + answer.search)));
    const ends = tries.filter(({ status }) => status === 302);
    t.equal(ends.length, 1);
    t.equal(tries.filter(({ status }) => status === 400).length, 11);
    return fragmentOf(ends[0]!);
  }

  const given = await race('marked-subject');
  t.match(await nodes[1]!.client().profile(given['access_token']), { status: 200, body: { email } });
  t.match(await nodes[0]!.client().refresh(given['refresh_token']), { status: 200 });
  t.match(await race('nobody'), { error: 'access_denied' });
  oidc.tamper((path) => (path === '/token' ? (body) => ({ ...body, id_token: `${String(body['id_token'])}x` }) : undefined));
  t.match(await race('marked-subject'), { error: 'provider_error' });
  t.equal((await needs.mysql.rows('SELECT id FROM sessions')).length, 1);

  const written = (): string => nodes.map((node) => node.output()).join('');
  await until(async () => written().includes('"outcome":"provider_error"'));
  t.match(written(), /"outcome":"provider_error"/);
  for (const secret of [...secrets, given['access_token']!, given['refresh_token']!, given['jti']!]) t.notOk(written().includes(secret), secret);
});
