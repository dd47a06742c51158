import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { loadConfig, type ConfigError } from '../../../src/config/load.js';
import { oauthProviders } from '../../../src/config/oauth-providers.js';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-providers-'));
t.teardown(() => rmSync(folder, { recursive: true }));

let files = 0;
function file(content: unknown, mode = 0o600): string {
  const path = join(folder, `${(files += 1)}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content), { mode });
  return path;
}

const GOOD = { id: 'google', issuer: 'https://accounts.google.com', clientId: 'c', clientSecret: 'top secret', scopes: ['openid', 'email'] };

t.test('scopes may be a list, a text or missing, and always have openid', (t) => {
  const scopesOf = (scopes: unknown): unknown => oauthProviders(file([{ ...GOOD, scopes }])).list[0]!.scopes;
  t.same(scopesOf(['openid', 'email']), ['openid', 'email']);
  t.same(scopesOf('email profile'), ['openid', 'email', 'profile']);
  t.same(scopesOf([]), ['openid']);
  t.same(scopesOf(undefined), ['openid', 'email', 'profile']);
  t.same(oauthProviders(file([GOOD, { ...GOOD, id: 'x', issuer: 'http://localhost:9000/a', clientAuth: 'post' }])), {
    list: [{ ...GOOD, clientAuth: null }, { ...GOOD, id: 'x', issuer: 'http://localhost:9000/a', clientAuth: 'post' }],
    isExposed: false,
  });
  t.same(oauthProviders(file([])).list, []);
  t.end();
});

t.test('a file that everybody on the machine may read is noticed', (t) => {
  t.equal(oauthProviders(file([GOOD], 0o644)).isExposed, true);
  t.equal(oauthProviders(file([GOOD], 0o640)).isExposed, false);
  t.end();
});

t.test('what is wrong is said with the entry, and never with a secret', (t) => {
  const cases: [unknown, RegExp][] = [
    [{ ...GOOD, id: 'a/b' }, /entry 1: id must/],
    [{ ...GOOD, id: 'local' }, /entry 1: id must/],
    [{ ...GOOD, id: '' }, /id must/],
    [{ ...GOOD, issuer: 'http://accounts.google.com' }, /issuer must/],
    [{ ...GOOD, issuer: 'https://u:p@accounts.google.com' }, /issuer must/],
    [{ ...GOOD, issuer: 'https://accounts.google.com?x=1' }, /issuer must/],
    [{ ...GOOD, issuer: 'accounts.google.com' }, /issuer must/],
    [{ ...GOOD, clientId: undefined }, /clientId must/],
    [{ ...GOOD, clientSecret: '' }, /clientSecret must/],
    [{ ...GOOD, clientSecret: ['top secret'] }, /clientSecret must/],
    [{ ...GOOD, scopes: 'open"id' }, /scopes must/],
    [{ ...GOOD, scopes: [1] }, /scopes must/],
    [{ ...GOOD, clientAuth: 'none' }, /clientAuth must/],
    [{ ...GOOD, secret: 'top secret' }, /secret is not a known member/],
    ['top secret', /must be an object/],
    [null, /must be an object/],
  ];
  for (const [entry, problem] of cases) {
    t.throws(() => oauthProviders(file([entry])), { message: problem }, String(problem));
    t.doesNotThrow(() => oauthProviders(file([GOOD])));
  }
  for (const text of ['', '{', '["top secret', JSON.stringify(GOOD), '42']) t.throws(() => oauthProviders(file(text)), { message: /JSON/ }, text.slice(0, 20));
  t.throws(() => oauthProviders(file([GOOD, GOOD])), { message: /the id google stands twice/ });
  t.throws(() => oauthProviders(join(folder, 'nowhere.json')), { message: /can be read: ENOENT/ });
  for (const entry of [...cases.map(([one]) => [one]), '["top secret', '"top secret"']) {
    try {
      oauthProviders(file(entry));
    } catch (error) {
      t.notMatch((error as Error).message, /top secret/);
    }
  }
  t.end();
});

t.test('the settings name every mistake at once', (t) => {
  const env = { MYSQL_URL: 'mysql://x@x/x', REDIS_URL: 'redis://x', SECRET_KEY: Buffer.alloc(32).toString('base64') };
  const problemsOf = (more: Record<string, string>): string[] => {
    try {
      loadConfig({ ...env, ...more });
      return [];
    } catch (error) {
      return (error as ConfigError).problems;
    }
  };
  t.match(problemsOf({ OAUTH_PROVIDERS_FILE: join(folder, 'nowhere'), OAUTH_REDIRECT_URIS: 'x', PUBLIC_URL: 'https://id.example.com/?a' }), [/^PUBLIC_URL must be/, /^OAUTH_PROVIDERS_FILE must be a file that can be read/, /^OAUTH_REDIRECT_URIS must be/]);
  for (const uri of ['/cb', 'https://app.example.com/cb#', 'https://app.example.com/ä', 'https://app.example.com/a b', 'javascript:alert(1)', 'DATA:text/html,x', 'https://a.example/\r\nX: y']) t.match(problemsOf({ OAUTH_REDIRECT_URIS: uri }), [/^OAUTH_REDIRECT_URIS must be absolute/], uri);
  const config = loadConfig({ ...env, OAUTH_REDIRECT_URIS: 'https://app.example.com/cb?x=1, com.example.app:/cb', PUBLIC_URL: 'https://id.example.com/base/', OAUTH_PROVIDERS_FILE: file([GOOD]) });
  t.match(config, { oauthRedirectUris: ['https://app.example.com/cb?x=1', 'com.example.app:/cb'], publicUrl: 'https://id.example.com/base', oauthProviders: { list: [{ id: 'google' }] } });
  t.end();
});
