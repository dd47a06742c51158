import { randomBytes } from 'node:crypto';
import t from 'tap';
import { buildApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/load.js';
import { createLog } from '../../src/log.js';
import { addRecoveryCodes, addTotp, createAccount } from '../support/accounts.js';
import { testEnv } from '../support/app.js';
import { cli, runProgram, SERVICE } from '../support/cli.js';
import { createClient, type Client } from '../support/client.js';
import { startNodes } from '../support/nodes.js';
import { freshDatabase, ownRedis } from '../support/stores.js';

type Body = Record<string, string>;

t.test('a new SECRET_KEY with the old one as SECRET_KEY_PREVIOUS costs nobody a session, a factor or a form', async (t) => {
  const [mysqlUrl, redis] = await Promise.all([freshDatabase(t), ownRedis(t)]);
  const env = testEnv(mysqlUrl, redis.url);
  const fresh = randomBytes(32).toString('base64');
  let app: App | null = null;
  t.teardown(() => app?.close());
  const restart = async (change: Record<string, string>): Promise<() => Client> => {
    await app?.close();
    app = await buildApp(loadConfig({ ...env, ...change }), createLog('fatal'), { strict: true });
    const base = `http://127.0.0.1:${app.port}`;
    return () => createClient(base);
  };

  let client = await restart({});
  const { needs } = app!;
  const plain = await createAccount(needs);
  const secured = await createAccount(needs);
  const totp = await addTotp(needs, secured.id);
  await addRecoveryCodes(needs, secured.id, ['aaaa-bbbb-cccc', 'dddd-eeee-ffff']);
  const sessions = (await Promise.all([client(), client()].map((one) => one.login(plain.email, plain.password)))).map(({ body }) => body as Body);
  const browser = client();
  await browser.login(plain.email, plain.password, 'cookie');
  const challenge = (await client().login(secured.email, secured.password)).body as Body;
  const keyOf = (token: string): string => (JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as { kid: string }).kid;

  client = await restart({ SECRET_KEY: fresh, SECRET_KEY_PREVIOUS: env['SECRET_KEY']! });
  const [one, other] = sessions as [Body, Body];
  t.equal((await client().profile(one['accessToken'])).status, 200, 'access tokens stand');
  const refreshed = await client().refresh(one['refreshToken'], { jti: one['jti'] });
  t.equal(refreshed.status, 200, 'refresh tokens stand, with their jti');
  t.equal(keyOf(refreshed.body['accessToken'] as string), keyOf(one['accessToken']!), 'the signing key is the same');
  t.match(await client().refresh(other['refreshToken'], { jti: one['jti'] }), { status: 401 }, 'of another session it is as wrong as ever');

  const moved = createClient(`http://127.0.0.1:${app!.port}`);
  for (const [name, value] of browser.jar) moved.jar.set(name, value);
  t.equal((await moved.refreshByCookie({ 'x-xsrf-token': 'x' })).status, 403);
  t.equal((await moved.refreshByCookie()).status, 200, 'the form of an open page stands');
  t.equal((await moved.refreshByCookie()).status, 200, 'and so does the new one');

  const verify = (mfaToken: unknown, method: string, code: string) => client().request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method, code } });
  t.equal((await verify(challenge['mfaToken'], 'totp', totp())).status, 200, 'the app on the phone still gives right codes, and the login that had begun goes on');
  const again = (await client().login(secured.email, secured.password)).body as Body;
  t.equal((await verify(again['mfaToken'], 'recovery_code', 'AAAA BBBB CCCC')).status, 200, 'recovery codes stand');

  client = await restart({ SECRET_KEY: env['SECRET_KEY']!, SECRET_KEY_PREVIOUS: fresh });
  t.equal((await client().refresh(refreshed.body['refreshToken'])).status, 200, 'going back works the same way');
  t.match(await client().login(plain.email, plain.password), { status: 200 });
});

t.test('after keys reseal the service runs without the former secret, with the same keys and factors', async (t) => {
  const { env, nodes, start, account, needs } = await startNodes(t, 1);
  const secured = await account();
  const totp = await addTotp(needs, secured.id);
  const fresh = randomBytes(32).toString('base64');
  const kids = async (base: string): Promise<string> => (await createClient(base).request('GET', '/.well-known/jwks.json')).text;
  const before = await kids(nodes[0]!.base);
  await nodes[0]!.stop();

  const during = { ...env, SECRET_KEY: fresh, SECRET_KEY_PREVIOUS: env['SECRET_KEY']! };
  t.match(await cli(during)('keys', 'reseal', '--json'), { code: 0, out: /"lost":0/ });
  const node = await start({ SECRET_KEY: fresh });
  t.equal(await kids(node.base), before);
  const { mfaToken } = (await node.client().login(secured.email, secured.password)).body;
  const signedIn = await node.client().request('POST', '/api/auth/mfa/verify-login', { body: { mfaToken, method: 'totp', code: totp() } });
  t.equal(signedIn.status, 200, 'the app on the phone still gives right codes');
  t.equal((await node.client().profile(signedIn.body['accessToken'] as string)).status, 200);
});

t.test('without the secret that sealed the signing key the service does not start, and says why', async (t) => {
  const { env, nodes } = await startNodes(t, 1);
  await nodes[0]!.stop();
  const { code, out } = await runProgram(SERVICE, [], { ...env, SECRET_KEY: randomBytes(32).toString('base64') });
  t.equal(code, 1);
  t.match(out, /SECRET_KEY is not the one/);
});
