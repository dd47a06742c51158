import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateKeyPair, exportJWK } from 'jose';
import Oidc from 'oidc-provider';
import { startApp, type TestApp } from './app.js';
import { startProxy, type Proxy } from './proxy.js';
import { freePort, type Teardown } from './stores.js';
import { fetched } from './witness.js';

/** What the provider says of a person, beside their subject. */
export type People = Record<string, Record<string, unknown>>;

/** A change of what the provider answers at a path: a status alone, or its JSON rewritten. */
export type Tampering = (path: string) => number | ((body: Record<string, unknown>) => Record<string, unknown>) | undefined;

/** A real OpenID Connect provider; whoever comes with the cookie `person` is signed in as that one. */
export interface TestProvider {
  issuer: string;
  people: People;
  proxy: Proxy;
  /** Paths asked so far, by this service and by browsers. */
  asked: string[];
  tamper: (how: Tampering) => void;
  /** Opens it to a client whose redirect URI is now known. */
  register: (redirectUri: string) => Promise<void>;
}

export const CLIENT = { id: 'portcullis', secret: 'a secret+of: the client' };
/** Where tests have tokens delivered. */
export const APP_URI = 'https://app.example.com/signed-in';

// oidc-provider asks for it; early releases of Node 20 lack it.
(URL as { parse?: unknown }).parse ??= (text: string, base?: string) => (URL.canParse(text, base) ? new URL(text, base) : null);

/** Starts a provider behind a proxy that can make it slow or absent. */
export async function startOidc(t: Teardown): Promise<TestProvider> {
  const port = await freePort();
  const proxy = await startProxy(t, `http://127.0.0.1:${port}`);
  const issuer = `http://127.0.0.1:${proxy.port}`;
  const people: People = {};
  const asked: string[] = [];
  let tampering: Tampering = () => undefined;
  let serve: (req: IncomingMessage, res: ServerResponse) => unknown = (_req, res) => res.writeHead(503).end();
  const server = createServer((req, res) => {
    const path = req.url!.split('?')[0]!;
    asked.push(path);
    const how = tampering(path);
    if (typeof how === 'number') return void res.writeHead(how, { 'content-type': 'text/plain' }).end('no');
    if (how) rewrite(res, how);
    void serve(req, res);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });

  return {
    ...{ issuer, people, proxy, asked },
    tamper: (how) => (tampering = how),
    async register(redirectUri) {
      const oidc = await createOidc(issuer, people, redirectUri);
      const callback = oidc.callback();
      serve = (req, res) => (req.url!.startsWith('/interaction/') ? interact(oidc, req, res) : callback(req, res));
    },
  };
}

async function createOidc(issuer: string, people: People, redirectUri: string): Promise<Oidc> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return new Oidc(issuer, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri], response_types: ['code'], grant_types: ['authorization_code'] }],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'k1' }] },
    cookies: { keys: ['test'] },
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['given_name', 'family_name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    ttl: { Interaction: 60, Session: 60, Grant: 60, AccessToken: 60, AuthorizationCode: 60, IdToken: 60 },
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ accountId: oidc.session!.accountId!, clientId: oidc.client!.clientId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
}

/** Signs in whom the cookie names; `nobody` says no. */
async function interact(oidc: Oidc, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const person = /(?:^|; )person=([^;]+)/.exec(req.headers.cookie ?? '')![1]!;
  const result = person === 'nobody' ? { error: 'access_denied', error_description: 'I would rather not' } : { login: { accountId: decodeURIComponent(person) } };
  await oidc.interactionFinished(req, res, result, { mergeWithLastSubmission: false });
}

function rewrite(res: ServerResponse, how: (body: Record<string, unknown>) => Record<string, unknown>): void {
  const end = res.end.bind(res) as (body?: string) => ServerResponse;
  res.end = ((body?: string | Buffer) => {
    const text = JSON.stringify(how(JSON.parse(String(body)) as Record<string, unknown>));
    res.setHeader('content-length', Buffer.byteLength(text));
    return end(text);
  }) as typeof res.end;
}

/** A reply on a browser's way. */
export interface Step {
  status: number;
  location: string | null;
  headers: Headers;
  text: string;
}

/** A browser that a person sits at. */
export interface Browser {
  /** One request, without following. */
  visit: (url: string) => Promise<Step>;
  /** Goes where it is sent, up to a URL of this origin, which is not visited. */
  follow: (url: string, origin: string) => Promise<string>;
  /** From the service to the provider and on, up to the URL of the callback, which is not visited. */
  toCallback: (start: string, change?: (url: URL) => void) => Promise<string>;
}

export function openBrowser(person: string, ip = '203.0.113.7'): Browser {
  const jar = new Map([['person', encodeURIComponent(person)]]);
  async function visit(url: string): Promise<Step> {
    const headers = { 'cookie': [...jar].map(([name, value]) => `${name}=${value}`).join('; '), 'user-agent': 'a browser', 'x-forwarded-for': ip };
    const { response, text } = await fetched(url, { headers });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      jar.set(name!, value!);
    }
    const location = response.headers.get('location');
    return { status: response.status, location, headers: response.headers, text };
  }
  async function follow(url: string, origin: string): Promise<string> {
    for (let hops = 0; hops < 8; hops += 1) {
      const { location, status, text } = await visit(url);
      if (location === null) throw new Error(`${status} ${text.slice(0, 500)}`);
      url = new URL(location, url).href;
      if (new URL(url).origin === origin) return url;
    }
    throw new Error('the provider sends the browser in circles');
  }
  return {
    visit,
    follow,
    async toCallback(start, change = () => undefined) {
      const first = await visit(start);
      if (first.location === null) throw new Error(`${first.status} ${first.text}`);
      const toProvider = new URL(first.location);
      change(toProvider);
      return follow(toProvider.href, new URL(start).origin);
    },
  };
}

/** What a client reads in its address bar; throws when it was sent elsewhere. */
export function fragmentOf({ status, location, text }: Step, to = APP_URI): Record<string, string> {
  if (status !== 302 || !location?.startsWith(`${to}#`)) throw new Error(`${status} ${location} ${text}`);
  return Object.fromEntries(new URLSearchParams(location.slice(to.length + 1)));
}

export interface OAuthApp extends TestApp {
  oidc: TestProvider;
  /** The URL that starts a flow. */
  start: (query?: Record<string, string>, provider?: string) => string;
  /** A whole sign-in; gives the fragment that the client is left with. */
  signIn: (person: string, query?: Record<string, string>) => Promise<Record<string, string>>;
}

/** Settings that make the provider known, under two names. */
export function oauthSettings(t: Teardown, { issuer }: Pick<TestProvider, 'issuer'>): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-oauth-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'providers.json');
  const entry = { issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, scopes: ['openid', 'email', 'profile'] };
  writeFileSync(file, JSON.stringify([{ id: 'test', ...entry }, { id: 'other', ...entry }]), { mode: 0o600 });
  return { OAUTH_PROVIDERS_FILE: file, OAUTH_REDIRECT_URIS: `${APP_URI},http://localhost:3000/cb`, LIMIT_OAUTH: '0', OAUTH_TIMEOUT_MS: '700' };
}

/** The service, with one real provider `test` and another entry `other` for the same one. */
export async function startOAuthApp(t: Teardown, settings: Record<string, string> = {}): Promise<OAuthApp> {
  const oidc = await startOidc(t);
  const app = await startApp(t, { ...oauthSettings(t, oidc), ...settings });
  await oidc.register(`${app.base}/api/auth/oauth/test/callback`);
  const start = (query: Record<string, string> = {}, provider = 'test'): string => `${app.base}/api/auth/oauth/${provider}?${new URLSearchParams({ redirect_uri: APP_URI, ...query }).toString()}`;
  return {
    ...{ ...app, oidc, start },
    async signIn(person, query) {
      const browser = openBrowser(person);
      return fragmentOf(await browser.visit(await browser.toCallback(start(query))));
    },
  };
}
