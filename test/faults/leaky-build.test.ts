import { Redis } from 'ioredis';
import t from 'tap';
import { startApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { openInbox } from '../support/inbox.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { brokenBuild } from '../support/racy.js';
import { takeLeaks } from '../support/secrets.js';
import type { Teardown } from '../support/stores.js';

// A search that a leaky build passes shows nothing. Here secrets are let out, and the harness must find each of them.

/** Ends what was started, so that it is searched, and gives what was found; a test of its own expects that. */
async function searched(run: (t: Teardown) => Promise<void>): Promise<string[]> {
  const ends: (() => unknown)[] = [];
  try {
    await run({ teardown: (end) => ends.unshift(end) });
  } finally {
    for (const end of ends) await end();
  }
  return takeLeaks().sort();
}

async function use(service: Pick<Nodes, 'account'> & { client: () => Client }): Promise<Record<string, unknown>> {
  const { email, password } = await service.account();
  const { refreshToken } = (await service.client().login(email, password)).body;
  return { email, password, ...(await service.client().refresh(refreshToken)).body };
}

t.test('a service that holds its tongue is not found to leak', async (t) => {
  t.same(await searched(async (scope) => {
    await use(await startApp(scope));
  }), []);
});

t.test('a token in a column, a password in a key or a value, and a token cut short in the log are found', async (t) => {
  const leaks = await searched(async (scope) => {
    const service = await startApp(scope);
    const { password, refreshToken, accessToken } = await use(service);
    await service.app.needs.mysql.run('UPDATE sessions SET device = ?', [`seen with ${String(refreshToken)}`]);
    const redis = new Redis(service.redis.url);
    await redis.hset('idp:{a}:leak', 'password', String(password));
    await redis.set(`idp:{b}:${String(accessToken)}`, '1', 'PX', 60_000);
    redis.disconnect();
    service.app.needs.log.trace({ cut: String(refreshToken).slice(0, 24) }, 'a line');
  });
  t.same(leaks, ['MySQL: refreshToken', 'Redis: accessToken', 'Redis: password of an account', 'log: refreshToken']);
});

t.test('a build that prints passwords, and stores codes and tokens as they are, is found to leak each of them', async (t) => {
  const inbox = openInbox(t);
  const main = brokenBuild(
    t,
    'dist/src/auth/login.js',
    'takeRoom(needs, call);',
    'takeRoom(needs, call); console.log(JSON.stringify(call.body));',
    ['dist/src/account/otp.js', "keyring.mac('otp', 'code', use, holder.id ?? '', code).toString('base64url')", 'code'],
    ['dist/src/account/mailed-token.js', 'sha256(token)', 'Buffer.from(token.slice(0, 32))'],
  );
  const leaks = await searched(async (scope) => {
    const { nodes, account } = await startNodes(scope, 1, inbox.settings, main);
    const client = nodes[0]!.client();
    const { email, accessToken } = await use({ account, client: () => client });
    await client.request('POST', '/api/auth/account/delete-request', { headers: { authorization: `Bearer ${String(accessToken)}` } });
    await client.request('POST', '/api/auth/password/forgot', { body: { email } });
    await inbox.nth(String(email), 'account_deletion_requested');
    await inbox.nth(String(email), 'password_reset_requested');
  });
  t.same(leaks, ['MySQL: token of a message', 'Redis: otp of a message', 'output: password of an account']);
});
