import * as oidc from 'openid-client';
import type { OAuthProvider } from '../../config/oauth-providers.js';
import type { Deps } from '../../deps.js';
import { Refused } from './refusal.js';
import type { Flow } from './flow.js';

/** Claims about a person (OpenID Connect Core §5.1); nothing in them is checked but who said them. */
export type Claims = Readonly<Record<string, unknown>>;

/** A person whom the provider has authenticated. */
export interface Person {
  issuer: string;
  subject: string;
  /**
   * What the provider says of them, asking at its userinfo endpoint for what the ID token leaves open.
   * @throws Refused provider_unavailable, provider_error
   */
  claims: () => Promise<Claims>;
}

/** An OpenID Connect provider, towards which this service is a client. */
export interface Provider {
  readonly id: string;
  /**
   * Where to send the browser.
   * @throws Refused provider_unavailable, provider_error
   */
  authorizationUrl: (flow: Pick<Flow, 'callback' | 'nonce' | 'verifier'>, state: string) => Promise<string>;
  /**
   * Exchanges what the provider sent the browser back with for the person: state, nonce, PKCE, signature and issuer hold.
   * @throws Refused access_denied, provider_unavailable, provider_error
   */
  redeem: (flow: Pick<Flow, 'callback' | 'nonce' | 'verifier'>, state: string, answer: Record<string, string>) => Promise<Person>;
}

export type Providers = ReadonlyMap<string, Provider>;

/** Every provider of the settings. None of them is asked anything before somebody wants to sign in with it. */
export function createProviders({ config, log }: Pick<Deps, 'config' | 'log'>): Providers {
  const { oauthProviders, oauthRedirectUris, oauthTimeoutMs } = config;
  if (!oauthProviders) return new Map();
  if (oauthProviders.isExposed) log.warn('OAUTH_PROVIDERS_FILE can be read by every user of this machine, and it holds secrets: chmod 600');
  const plain = oauthRedirectUris.filter((uri) => isPlainHttp(new URL(uri)));
  if (plain.length > 0) log.warn({ plain }, 'tokens will be delivered to pages that are not protected by TLS: OAUTH_REDIRECT_URIS');
  return new Map(oauthProviders.list.map((settings) => [settings.id, createProvider(settings, oauthTimeoutMs)]));
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const isPlainHttp = ({ protocol, hostname }: URL): boolean => protocol === 'http:' && !LOOPBACK.includes(hostname);

function createProvider(settings: OAuthProvider, timeoutMs: number): Provider {
  const metadata = createMetadata(settings, timeoutMs);
  const step = <T>(work: (configuration: oidc.Configuration) => Promise<T>): Promise<T> => within(timeoutMs, async () => work(await metadata())).catch(judge);

  return {
    id: settings.id,
    authorizationUrl: ({ callback, nonce, verifier }, state) =>
      step(async (configuration) => {
        const challenge = await oidc.calculatePKCECodeChallenge(verifier);
        const asked = { redirect_uri: callback, scope: settings.scopes.join(' '), state, nonce, code_challenge: challenge, code_challenge_method: 'S256' };
        return oidc.buildAuthorizationUrl(configuration, asked).href;
      }),
    redeem: ({ callback, nonce, verifier }, state, answer) =>
      step(async (configuration) => {
        const url = new URL(callback);
        url.search = new URLSearchParams(answer).toString();
        const tokens = await oidc.authorizationCodeGrant(configuration, url, { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true });
        const said = tokens.claims()!;
        return {
          ...{ issuer: said.iss, subject: said.sub },
          claims: () => (isComplete(said) || !configuration.serverMetadata().userinfo_endpoint ? Promise.resolve(said) : step(async () => ({ ...said, ...(await oidc.fetchUserInfo(configuration, tokens.access_token, said.sub)) }))),
        };
      }),
  };
}

const isComplete = (claims: Claims): boolean => ['email', 'email_verified', 'given_name', 'family_name'].every((name) => claims[name] !== undefined);

/** The provider's metadata are read anew after so long, in ms; after a failure they are good for so long more. */
const FRESH_MS = 3_600_000;
const STALE_MS = 60_000;

/** Gives the provider's metadata: discovered when they are first needed, by one request for all who wait. */
function createMetadata(settings: OAuthProvider, timeoutMs: number): () => Promise<oidc.Configuration> {
  let known: { configuration: oidc.Configuration; until: number } | null = null;
  let underWay: Promise<oidc.Configuration> | null = null;

  async function discover(): Promise<oidc.Configuration> {
    try {
      const configuration = await oidc.discovery(new URL(settings.issuer), settings.clientId, settings.clientSecret, clientAuth(settings), {
        // Bounds each single request; in whole seconds, since fractions upset its timer.
        timeout: Math.ceil(timeoutMs / 1000),
        // openid-client leaves ID tokens that came over TLS unverified unless it is told to look at their signature.
        // The settings let plain http pass on this machine alone.
        // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so that it stands out
        execute: [oidc.enableNonRepudiationChecks, ...(settings.issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : [])],
      });
      known = { configuration, until: performance.now() + FRESH_MS };
      return configuration;
    } catch (error) {
      if (!known) throw error;
      known.until = performance.now() + STALE_MS;
      return known.configuration;
    } finally {
      underWay = null;
    }
  }

  return async () => (known && performance.now() < known.until ? known.configuration : (underWay ??= discover()));
}

/** How this client proves itself at the token endpoint; without a setting as the provider prefers (OpenID Connect Discovery §3). */
function clientAuth({ clientId, clientSecret, clientAuth: chosen }: OAuthProvider): oidc.ClientAuth {
  const post = oidc.ClientSecretPost(clientSecret);
  return (server, client, body, headers) => {
    const offered = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    if (chosen === 'post' || (chosen === null && !offered.includes('client_secret_basic'))) return post(server, client, body, headers);
    // The library's own escapes letters that need none, which some providers do not undo.
    headers.set('authorization', `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`);
  };
}

/** application/x-www-form-urlencoded (RFC 6749 appendix B). */
const formEncoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);

class Late extends Error {}

/** What takes longer is given up; whatever it still brings about, nobody looks at it. */
async function within<T>(ms: number, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => (timer = setTimeout(() => reject(new Late(`no answer within ${ms} ms`)), ms)));
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Errors that a provider names and that pass (RFC 6749 §4.1.2.1). */
const PASSING = ['temporarily_unavailable', 'server_error'];

function judge(error: unknown): never {
  if (error instanceof oidc.AuthorizationResponseError && error.error === 'access_denied') throw new Refused('access_denied', {}, { cause: error });
  throw new Refused(isAway(error) ? 'provider_unavailable' : 'provider_error', {}, { cause: error });
}

function isAway(error: unknown): boolean {
  if (error instanceof oidc.AuthorizationResponseError || error instanceof oidc.ResponseBodyError) return PASSING.includes(error.error);
  if (error instanceof Late || (error instanceof TypeError && error.message === 'fetch failed')) return true;
  if (!(error instanceof oidc.ClientError)) return false;
  return error.code === 'OAUTH_TIMEOUT' || (error.cause instanceof Response && error.cause.status >= 500);
}
