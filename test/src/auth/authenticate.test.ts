import { connect } from 'node:net';
import t from 'tap';
import { codeOf } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import type { Client, Issued } from '../../support/client.js';
import { figure } from '../../support/figures.js';

const { app, base, client, account } = await startApp(t);
const { mysql } = app.needs;

async function tokensOf(user: { email: string; password: string }): Promise<Issued> {
  return (await client().login(user.email, user.password)).body as unknown as Issued;
}

const profileWith = (from: Client, headers: Record<string, string>) => from.request('GET', '/api/auth/profile', { headers });

t.test('the header is used first and the cookie second', async (t) => {
  const [ann, bob] = [await account(), await account()];
  const [ofAnn, ofBob] = [await tokensOf(ann), await tokensOf(bob)];
  const from = client();
  t.match(await profileWith(from, { authorization: `Bearer ${ofAnn.accessToken}`, cookie: `idp_at=${ofBob.accessToken}` }), { status: 200, body: { email: ann.email } });
  t.match(await profileWith(from, { authorization: 'Bearer bogus', cookie: `idp_at=${ofBob.accessToken}` }), { status: 200, body: { email: bob.email } });
  t.match(await profileWith(from, { authorization: `Basic ${ofAnn.accessToken}`, cookie: `idp_at=${ofBob.accessToken}` }), { status: 200, body: { email: bob.email } });
  t.match(await profileWith(from, { authorization: `bearer  ${ofAnn.accessToken}` }), { status: 200, body: { email: ann.email } });
});

t.test('without a valid credential the answer is 401 and asks for a bearer token', async (t) => {
  const { accessToken, refreshToken } = await tokensOf(await account());
  const bad: Record<string, string>[] = [{}, { authorization: 'Bearer' }, { authorization: 'Bearer ' }, { authorization: accessToken }, { authorization: `Bearer ${accessToken} x` }, { authorization: `Bearer ${accessToken},Bearer ${accessToken}` }, { cookie: 'idp_at=' }, { cookie: `idp_rt=${refreshToken}` }, { 'cookie': `IDP_AT=${accessToken}` }, { 'x-token-delivery': 'cookie' }];
  for (const headers of bad) {
    const answer = await profileWith(client(), headers);
    t.match(answer, { status: 401, body: { code: 'UNAUTHENTICATED' } }, JSON.stringify(headers).slice(0, 60));
    t.equal(answer.headers.get('www-authenticate'), 'Bearer');
  }
});

/** Sends lines as they are, since fetch would join equal headers. */
function raw(lines: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(base).port), '127.0.0.1', () => socket.write(`${['GET /api/auth/profile HTTP/1.1', 'Host: x', ...lines].join('\r\n')}\r\n\r\n`));
    socket.setEncoding('utf8').once('data', (text) => {
      socket.destroy();
      resolve(String(text));
    });
    socket.once('error', reject);
  });
}

t.test('two values for one credential are refused, never picked from', async (t) => {
  const { accessToken } = await tokensOf(await account());
  t.match(await raw([`Authorization: Bearer ${accessToken}`]), /^HTTP\/1.1 200/);
  t.match(await raw([`Cookie: idp_at=${accessToken}`]), /^HTTP\/1.1 200/);
  const doubled = [
    [`Authorization: Bearer ${accessToken}`, `Authorization: Bearer ${accessToken}`],
    ['Authorization: Bearer x', `Authorization: Bearer ${accessToken}`],
    [`Cookie: idp_at=${accessToken}; idp_at=${accessToken}`],
    [`Cookie: idp_at=x; idp_at=${accessToken}`],
    [`Cookie: idp_at=${accessToken}`, 'Cookie: idp_at=x'],
    [`Cookie: idp_at=${accessToken}; idp_rt=a; idp_rt=b`],
    [`Cookie: idp_at=${accessToken}; idp_jti=a; idp_jti=b`],
  ];
  let accepted = 0;
  for (const lines of doubled) {
    const reply = await raw(lines);
    t.match(reply, /^HTTP\/1.1 401 .*UNAUTHENTICATED/s, lines.map((line) => line.slice(0, 24)).join(' | '));
    if (reply.startsWith('HTTP/1.1 200')) accepted += 1;
  }
  figure(t, 'T25', { did: `${doubled.length} ways to send a credential twice`, figure: `${accepted} accepted`, ok: accepted === 0 });
});

t.test('what ends a session or account ends its access tokens at once', async (t) => {
  const endings = ['UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3) WHERE user_id = ?', 'UPDATE sessions SET deleted_at = UTC_TIMESTAMP(3) WHERE user_id = ?', 'UPDATE sessions SET expires_at = UTC_TIMESTAMP(3) WHERE user_id = ?', 'DELETE FROM sessions WHERE user_id = ?', "UPDATE users SET status = 'disabled' WHERE id = ?", 'UPDATE users SET deleted_at = UTC_TIMESTAMP(3) WHERE id = ?', 'DELETE FROM users WHERE id = ?'];
  let accepted = 0;
  for (const sql of endings) {
    const user = await account();
    const { accessToken } = await tokensOf(user);
    t.equal((await client().profile(accessToken)).status, 200);
    await mysql.run(sql, [user.id]);
    const { status } = await client().profile(accessToken);
    t.equal(status, 401, sql);
    if (status === 200) accepted += 1;
  }
  figure(t, 'T21', { did: `${endings.length} ways a session or account ends, at once profile`, figure: `${accepted} accepted`, ok: accepted === 0 });
});

t.test('the profile shows who the caller is', async (t) => {
  const user = await account({ phone: '+491701234567' });
  const role = '11111111-1111-4111-8111-111111111111';
  await mysql.run('INSERT INTO roles (id, name, description) VALUES (?, ?, NULL)', [role, 'editor']);
  await mysql.run('INSERT INTO user_roles (user_id, role_id) VALUES (?, ?)', [user.id, role]);
  await mysql.run('INSERT INTO tenants (id, name, slug) VALUES (?, ?, ?)', [role, 'Acme ✓', 'acme']);
  await mysql.run('INSERT INTO user_tenants (user_id, tenant_id) VALUES (?, ?)', [user.id, role]);
  await mysql.run("INSERT INTO profiles (id, user_id, provider, given_name, family_name, created_at) VALUES (?, ?, 'local', 'Ann', NULL, '2026-01-02 03:04:05.678')", [role, user.id]);
  const { accessToken } = await tokensOf(user);
  const answer = await client().profile(accessToken);
  t.same(Object.keys(answer.body).sort(), ['createdAt', 'email', 'emailVerified', 'id', 'mfaEnabled', 'phone', 'phoneVerified', 'profiles', 'roles', 'sessionId', 'status', 'tenants']);
  t.match(answer.body, {
    ...{ id: user.id, email: user.email, emailVerified: true, phone: '+491701234567', phoneVerified: true, status: 'active', mfaEnabled: false },
    profiles: [{ provider: 'local', givenName: 'Ann', familyName: null, createdAt: '2026-01-02T03:04:05.678Z' }],
    roles: [{ id: role, name: 'editor', description: null }],
    tenants: [{ id: role, name: 'Acme ✓', slug: 'acme' }],
  });
  t.match(answer.body['createdAt'], /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  t.match(JSON.parse(Buffer.from(accessToken.split('.')[1]!, 'base64url').toString()), { roles: ['editor'], sid: answer.body['sessionId'] });
});

t.test('logout revokes the session of the call alone and clears the cookies', async (t) => {
  const user = await account();
  const other = await tokensOf(user);
  const from = client();
  await from.login(user.email, user.password, 'cookie');
  const former = from.cookieHeader();
  const answer = await from.request('POST', '/api/auth/logout', { headers: { 'cookie': former, 'x-xsrf-token': from.jar.get('XSRF-TOKEN')! } });
  t.equal(answer.status, 204);
  t.equal(answer.text, '');
  t.same(answer.setCookies, ['idp_at=; Max-Age=0; Path=/api; HttpOnly; Secure; SameSite=Strict', 'idp_rt=; Max-Age=0; Path=/api/auth; HttpOnly; Secure; SameSite=Strict', 'idp_jti=; Max-Age=0; Path=/api/auth; HttpOnly; Secure; SameSite=Strict', 'XSRF-TOKEN=; Max-Age=0; Path=/; Secure; SameSite=Strict']);
  t.equal((await profileWith(client(), { cookie: former })).status, 401);
  t.equal((await client().profile(other.accessToken)).status, 200);
  const byHeader = await client().request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${other.accessToken}` } });
  t.equal(byHeader.status, 204);
  t.same(byHeader.setCookies, []);
  t.equal(codeOf(await client().refresh(other.refreshToken)), 'REFRESH_SESSION_REVOKED');
  t.equal((await client().request('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${other.accessToken}` } })).status, 401, 'a second time there is no session');
  const [row] = await mysql.rows<{ n: unknown }>("SELECT COUNT(*) AS n FROM audit_log WHERE user_id = ? AND action = 'logout'", [user.id]);
  t.equal(Number(row!.n), 2);
});
