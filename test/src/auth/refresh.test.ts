import t from 'tap';
import { readRefreshToken } from '../../../src/auth/refresh-token.js';
import { codeOf, pause } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import type { Client, Issued } from '../../support/client.js';
import { figure } from '../../support/figures.js';

const { app, client, account } = await startApp(t);
const { mysql, keyring } = app.needs;

/** A client with a session in json mode. */
async function signedIn(): Promise<{ user: string; from: Client; tokens: Issued; session: string }> {
  const { id, email, password } = await account();
  const from = client();
  const tokens = (await from.login(email, password)).body as unknown as Issued;
  return { user: id, from, tokens, session: readRefreshToken(keyring, tokens.refreshToken)!.sessionId };
}

const refreshed = async (from: Client, { refreshToken }: Issued): Promise<Issued> => (await from.refresh(refreshToken)).body as unknown as Issued;
/** Moves the newest rotation of a session into the past. */
const age = (session: string, ms: number): Promise<unknown> => mysql.run('UPDATE sessions SET rotated_at = rotated_at - INTERVAL ? MICROSECOND WHERE id = ?', [ms * 1000, session]);
const set = (session: string, sql: string): Promise<unknown> => mysql.run(`UPDATE sessions SET ${sql} WHERE id = ?`, [session]);
const eventsOf = (session: string): Promise<{ type: string; message: string }[]> => mysql.rows("SELECT type, message FROM event_outbox WHERE message LIKE CONCAT('%', ?, '%')", [session]);
const auditOf = async (user: string, action: string): Promise<number> => Number((await mysql.rows<{ n: unknown }>('SELECT COUNT(*) AS n FROM audit_log WHERE user_id = ? AND action = ?', [user, action]))[0]!.n);

t.test('a refresh replaces all three tokens and keeps the session', async (t) => {
  const { from, tokens } = await signedIn();
  const answer = await from.refresh(tokens.refreshToken, { jti: tokens.jti });
  t.equal(answer.status, 200);
  t.same(Object.keys(answer.body), ['accessToken', 'refreshToken', 'jti', 'tokenType', 'expiresIn', 'refreshExpiresIn']);
  t.match(answer.body, { tokenType: 'Bearer', expiresIn: 900, refreshExpiresIn: 14 * 24 * 3600 });
  t.same(answer.setCookies, []);
  for (const name of ['accessToken', 'refreshToken', 'jti'] as const) t.not(answer.body[name], tokens[name]);
  const [before, after] = await Promise.all([from.profile(tokens.accessToken), from.profile(answer.body['accessToken'] as string)]);
  t.equal(before.body['sessionId'], after.body['sessionId']);
});

t.test('each thing that ends a session has its code, told to the holder of its newest token alone', async (t) => {
  const states: [string, (session: string, user: string) => Promise<unknown>][] = [
    ['REFRESH_SESSION_NOT_FOUND', (session) => mysql.run('DELETE FROM sessions WHERE id = ?', [session])],
    ['REFRESH_SESSION_DELETED', (session) => set(session, 'deleted_at = UTC_TIMESTAMP(3), revoked_at = UTC_TIMESTAMP(3)')],
    ['REFRESH_SESSION_REVOKED', (session) => set(session, 'revoked_at = UTC_TIMESTAMP(3), expires_at = UTC_TIMESTAMP(3)')],
    ['REFRESH_SESSION_EXPIRED', (session) => set(session, 'expires_at = UTC_TIMESTAMP(3)')],
    ['REFRESH_USER_NOT_FOUND', (_, user) => mysql.run('DELETE FROM users WHERE id = ?', [user])],
    ['REFRESH_USER_INACTIVE', (_, user) => mysql.run("UPDATE users SET status = 'disabled' WHERE id = ?", [user])],
    ['REFRESH_USER_INACTIVE', (_, user) => mysql.run('UPDATE users SET deleted_at = UTC_TIMESTAMP(3) WHERE id = ?', [user])],
  ];
  for (const [code, end] of states) {
    const { user, from, tokens, session } = await signedIn();
    const newest = await refreshed(from, tokens);
    await end(session, user);
    const answer = await from.refresh(newest.refreshToken);
    t.match(answer, { status: 401, body: { code } });
    t.equal(answer.headers.get('content-type'), 'application/problem+json');
    const former = await from.refresh(tokens.refreshToken);
    t.equal(codeOf(former), code === 'REFRESH_SESSION_NOT_FOUND' ? code : 'REFRESH_TOKEN_INVALID', `a former token is not told ${code}`);
    t.equal((await from.profile(newest.accessToken)).status, 401, 'and the access token is refused as well');
  }
});

t.test('a direct predecessor that comes within 2 s is refused without ending the session', async (t) => {
  const { from, tokens, session, user } = await signedIn();
  const second = await refreshed(from, tokens);
  await pause(20);
  t.match(await from.refresh(tokens.refreshToken), { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' } });
  await age(session, 1500);
  t.equal(codeOf(await from.refresh(tokens.refreshToken)), 'REFRESH_TOKEN_INVALID');
  t.equal(await auditOf(user, 'refresh.reuse'), 0);
  const then = codeOf(await from.refresh(second.refreshToken));
  figure(t, 'T20', { did: 'the reply of a refresh thrown away, the former token sent at +20 ms and +1.5 s, then the new one', figure: `refused twice; then ${then}`, ok: then === 'OK' });
});

t.test('a predecessor that comes later, or any older one, ends the session with an audit entry and an event', async (t) => {
  const late = await signedIn();
  const second = await refreshed(late.from, late.tokens);
  await age(late.session, 2100);
  t.equal(codeOf(await late.from.refresh(late.tokens.refreshToken)), 'REFRESH_TOKEN_INVALID');
  const afterLate = codeOf(await late.from.refresh(second.refreshToken));
  t.equal(afterLate, 'REFRESH_SESSION_REVOKED');

  const older = await signedIn();
  const third = await refreshed(older.from, await refreshed(older.from, older.tokens));
  t.equal(codeOf(await older.from.refresh(older.tokens.refreshToken)), 'REFRESH_TOKEN_INVALID', 'two generations old, at +0 s');
  const afterOlder = codeOf(await older.from.refresh(third.refreshToken));
  figure(t, 'T15', { did: 'a predecessor replayed at +2.1 s; one of two generations ago at +0 s', figure: `then the newest: ${afterLate}, ${afterOlder}`, ok: afterLate === 'REFRESH_SESSION_REVOKED' && afterOlder === 'REFRESH_SESSION_REVOKED' });

  for (const { session, user, from, tokens } of [late, older]) {
    await from.refresh(tokens.refreshToken);
    t.equal(await auditOf(user, 'refresh.reuse'), 1, 'once, however often it is used');
    const events = await eventsOf(session);
    t.equal(events.length, 1);
    t.match(JSON.parse(events[0]!.message), { type: 'identity.session.reuse_detected', userId: user, sessionId: session });
  }
});

t.test('fifty rotations in a row: no replaced token is ever accepted', async (t) => {
  const { from, tokens } = await signedIn();
  const old: Issued[] = [];
  let newest = tokens;
  for (let i = 0; i < 50; i += 1) {
    old.push(newest);
    newest = await refreshed(from, newest);
  }
  const replays: number[] = [];
  for (const { refreshToken } of old.reverse()) replays.push((await from.refresh(refreshToken)).status);
  const accepted = replays.filter((status) => status === 200).length;
  figure(t, 'T17', { did: '50 rotations in a row, then each replaced token', figure: `${accepted} accepted`, ok: accepted === 0 });
  t.equal(codeOf(await from.refresh(newest.refreshToken)), 'REFRESH_SESSION_REVOKED');
});

t.test('nothing that was not issued here ends a session, whatever jti comes with it', async (t) => {
  const { from, tokens, user } = await signedIn();
  const second = await refreshed(from, tokens);
  const bytes = Buffer.from(tokens.refreshToken, 'base64url');
  const altered = (at: number): string => {
    const copy = Buffer.from(bytes);
    copy[at]! ^= 1;
    return copy.toString('base64url');
  };
  const garbage = ['', 'x', 'x'.repeat(91), tokens.accessToken.slice(0, 91), altered(18), altered(30), altered(60), tokens.refreshToken.slice(0, -1), `${tokens.refreshToken}=`, `${tokens.refreshToken}A`, tokens.refreshToken.slice(0, -1) + (tokens.refreshToken.endsWith('A') ? 'B' : 'A')];
  for (const refreshToken of garbage) {
    for (const jti of [tokens.jti, second.jti]) t.match(await from.refresh(refreshToken, { jti }), { status: 401, body: { code: /REFRESH_TOKEN_INVALID|REFRESH_SESSION_NOT_FOUND/ } });
  }
  t.equal(await auditOf(user, 'refresh.reuse'), 0);
  t.equal(codeOf(await from.refresh(second.refreshToken)), 'OK');
});

t.test('a jti that does not belong to the token makes it invalid and ends nothing', async (t) => {
  const { from, tokens } = await signedIn();
  const other = await signedIn();
  for (const jti of ['', 'x', other.tokens.jti, `${tokens.jti}A`]) t.match(await from.refresh(tokens.refreshToken, { jti }), { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' } });
  t.equal(codeOf(await from.refresh(tokens.refreshToken, { jti: tokens.jti })), 'OK');
});

t.test('a replaced token ends its session whatever jti comes with it', async (t) => {
  const { from, tokens } = await signedIn();
  const second = await refreshed(from, tokens);
  const third = await refreshed(from, second);
  t.equal(codeOf(await from.refresh(tokens.refreshToken, { jti: third.jti })), 'REFRESH_TOKEN_INVALID');
  t.equal(codeOf(await from.refresh(third.refreshToken)), 'REFRESH_SESSION_REVOKED');
});

t.test('a body without a token, or with one of another type, is malformed', async (t) => {
  const from = client();
  for (const body of [{}, { refreshToken: 1 }, { refreshToken: null }, { refreshToken: ['x'] }, { refreshToken: 'x', jti: 1 }, { refreshToken: 'x'.repeat(513) }, []]) {
    t.match(await from.request('POST', '/api/auth/refresh', { body }), { status: 400, body: { code: 'INVALID_REQUEST' } });
  }
});

t.test('a session lives 14 days from its newest refresh and 30 in all', async (t) => {
  const { from, tokens, session } = await signedIn();
  await set(session, 'expires_at = UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE, absolute_expires_at = UTC_TIMESTAMP(3) + INTERVAL 20 DAY');
  const second = await from.refresh(tokens.refreshToken);
  t.equal(second.body['refreshExpiresIn'], 14 * 24 * 3600);
  await set(session, 'absolute_expires_at = UTC_TIMESTAMP(3) + INTERVAL 100 SECOND');
  const third = await from.refresh(second.body['refreshToken']);
  t.ok([99, 100].includes(third.body['refreshExpiresIn'] as number));
  t.ok((third.body['expiresIn'] as number) <= 100, 'no access token outlives its session');
});

t.test('requests at once get one successor', async (t) => {
  const { tokens } = await signedIn();
  const answers = await Promise.all(Array.from({ length: 20 }, () => client().refresh(tokens.refreshToken)));
  const won = answers.filter(({ status }) => status === 200);
  t.ok(won.length > 0);
  t.equal(new Set(won.map(({ body }) => `${String(body['refreshToken'])}${String(body['jti'])}`)).size, 1);
});

t.test('REFRESH_GRACE_MS gives a late predecessor the same successor, and no older token anything', async (t) => {
  const graceful = await startApp(t, { REFRESH_GRACE_MS: '1000' });
  const { email, password } = await graceful.account();
  const from = graceful.client();
  const first = (await from.login(email, password)).body as unknown as Issued;
  const second = await refreshed(from, first);
  await pause(50);
  const again = await refreshed(from, first);
  t.equal(again.refreshToken, second.refreshToken);
  t.equal(again.jti, second.jti);
  figure(t, 'T20', { did: 'the same with REFRESH_GRACE_MS', figure: again.refreshToken === second.refreshToken ? 'the same successor again' : 'another successor', ok: again.refreshToken === second.refreshToken });
  await graceful.app.needs.mysql.run('UPDATE sessions SET rotated_at = rotated_at - INTERVAL 1 SECOND');
  t.equal(codeOf(await from.refresh(first.refreshToken)), 'REFRESH_TOKEN_INVALID');
  const third = await refreshed(from, second);
  t.ok(third.refreshToken, 'still alive');
  t.equal(codeOf(await from.refresh(first.refreshToken)), 'REFRESH_TOKEN_INVALID');
  t.equal(codeOf(await from.refresh(third.refreshToken)), 'REFRESH_SESSION_REVOKED');
});

t.test('refreshes are limited per session and per address; a stranger cannot use up a session', async (t) => {
  const limited = await startApp(t, { LIMIT_REFRESH_SESSION: '3/60', LIMIT_REFRESH_IP: '8/60' });
  const { email, password } = await limited.account();
  const from = limited.client({ ip: '198.51.100.7' });
  let tokens = (await from.login(email, password)).body as unknown as Issued;
  const forged = Buffer.from(tokens.refreshToken, 'base64url');
  forged[66]! ^= 1;
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await limited.client({ ip: '198.51.100.8' }).refresh(forged.toString('base64url'))), 'REFRESH_TOKEN_INVALID');
  for (let i = 0; i < 3; i += 1) tokens = await refreshed(from, tokens);
  const refused = await from.refresh(tokens.refreshToken);
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED' } });
  t.equal(refused.headers.get('retry-after'), String(refused.body['retryAfter']));
  t.ok((refused.body['retryAfter'] as number) > 50);
  for (let i = 0; i < 4; i += 1) await from.refresh('x');
  t.equal(codeOf(await from.refresh('x')), 'RATE_LIMITED', 'by address');
  t.equal(codeOf(await limited.client({ ip: '198.51.100.8' }).refresh('x')), 'REFRESH_TOKEN_INVALID');
});
