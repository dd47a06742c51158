import { Type } from '@sinclair/typebox';
import * as oidc from 'openid-client';
import type { Deps } from '../../deps.js';
import { ApiError } from '../../errors.js';
import { answer, type Call, type Reply } from '../../http/call.js';
import { endpoint } from '../../http/endpoint.js';
import type { LoginAccount } from '../../store/login-accounts.js';
import { enter, releaseOnThrow, type Attempt } from '../attempt.js';
import { challenge, type Challenge } from '../challenge.js';
import type { Ticket } from '../gate.js';
import { sourceOf } from '../identity.js';
import { draftSession, type Tokens } from '../session.js';
import { demandUsable, draftJob, enterSession, type SignInNeeds } from '../sign-in.js';
import { accountOfPerson } from './account.js';
import { keepFlow, takeFlow, type Flow } from './flow.js';
import type { Provider, Providers } from './provider.js';
import { reasonOf, REFUSALS, Refused, refusalOf } from './refusal.js';

export type OAuthNeeds = SignInNeeds & Pick<Deps, 'redis' | 'events' | 'notify'> & { oauthProviders: Providers };

/** A token that travelled in a URL is good for so long, unless its session is refreshed within it, in ms. */
const FIRST_USE_MS = 60_000;

const provider = Type.String({ description: 'The id of a provider in OAUTH_PROVIDERS_FILE.', examples: ['google'] });

/** GET /api/auth/oauth/{provider}: sends the browser to the provider. */
export const oauthStart = endpoint({
  tag: 'Providers',
  summary: 'Sign in with another provider',
  description: 'For the address bar, not for scripts. No cookie is set: what tells a client that an answer is to its own question is the `state` that it sent.',
  params: { provider },
  query: Type.Object({
    redirect_uri: Type.String({ minLength: 1, maxLength: 2048, description: 'Where the tokens go: byte for byte one of OAUTH_REDIRECT_URIS.', examples: ['https://app.example.com/signed-in'] }),
    state: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'Comes back in the fragment. A client keeps a random value and takes no tokens that come without it.', examples: ['af0ifjsldkj'] })),
  }),
  replies: { 302: { body: null, description: 'On to the provider.', headers: { Location: 'The authorization endpoint of the provider.' } } },
  errors: ['OAUTH_PROVIDER_UNKNOWN', 'OAUTH_PROVIDER_UNAVAILABLE'],
  handle: async (needs: OAuthNeeds, call) => {
    const { redirect_uri: redirectUri, state: clientState = null } = call.query;
    const target = providerOf(needs, call.params.provider);
    demandListed(needs, redirectUri);
    const flow: Flow = { provider: target.id, redirectUri, clientState, callback: `${baseOf(needs, call)}${call.path}/callback`, nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
    const state = await keepFlow(needs, flow);
    try {
      return redirect(await target.authorizationUrl(flow, state));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      needs.log.warn({ requestId: call.requestId, provider: target.id, reason: reasonOf(error) }, 'a provider cannot be used');
      throw new ApiError('OAUTH_PROVIDER_UNAVAILABLE', {}, { cause: error });
    }
  },
});

/** GET /api/auth/oauth/{provider}/callback: takes the browser back with the provider's answer, and sends it on to its client. */
export const oauthCallback = endpoint({
  tag: 'Providers',
  summary: 'Come back from the provider',
  description: `Called by the browser on the provider’s word. The fragment carries tokens as a login gives them, with the session ending after ${FIRST_USE_MS / 1000} s unless it is refreshed before; or \`mfa_token\`, \`methods\` and \`expires_in\` when a second factor is due; or \`error\`, one of ${REFUSALS.join(', ')}.`,
  params: { provider },
  query: Type.Object({ state: Type.Optional(Type.String({ maxLength: 128, description: 'Names the sign-in; the rest is the provider’s answer (RFC 6749 §4.1.2).', examples: ['hwRlkEJnKq5kFgGkQfW0vVQ9nJm2b8s7T1yZ3xC5vB0'] })) }),
  replies: { 302: { body: null, description: 'On to the client.', headers: { Location: 'The redirect_uri of the client, with a fragment.' } } },
  errors: ['OAUTH_PROVIDER_UNKNOWN', 'OAUTH_STATE_INVALID'],
  handle: async (needs: OAuthNeeds, call) => {
    const target = providerOf(needs, call.params.provider);
    const { state } = call.query;
    const flow = state === undefined ? null : await takeFlow(needs, state);
    // A flow of another provider: its answer must never be shown to this one (RFC 9700 §4.4).
    if (state === undefined || flow?.provider !== target.id || !isListed(needs, flow.redirectUri)) throw new ApiError('OAUTH_STATE_INVALID');
    const ending = await finish(needs, call, target, flow, state).catch((error: unknown) => refusal(needs, call, target, error));
    return redirect(`${flow.redirectUri}#${fragment({ ...ending, ...(flow.clientState === null ? {} : { state: flow.clientState }) })}`);
  },
});

type Ending = Record<string, string | number>;

const fragment = (ending: Ending): string => new URLSearchParams(Object.entries(ending).map(([name, value]): [string, string] => [name, String(value)])).toString();

const redirect = (location: string): Reply<302, never> => answer(302, { headers: { Location: location } });

function providerOf({ oauthProviders }: OAuthNeeds, id: string): Provider {
  const found = oauthProviders.get(id);
  if (!found) throw new ApiError('OAUTH_PROVIDER_UNKNOWN');
  return found;
}

/** Byte for byte: whatever reads two spellings as one address would deliver tokens to whoever has the other. */
const isListed = ({ config }: OAuthNeeds, redirectUri: string): boolean => config.oauthRedirectUris.includes(redirectUri);

function demandListed(needs: OAuthNeeds, redirectUri: string): void {
  if (isListed(needs, redirectUri)) return;
  throw new ApiError('INVALID_REQUEST', { errors: [{ path: '/query/redirect_uri', message: 'must equal an entry of OAUTH_REDIRECT_URIS' }] });
}

/** Where the provider finds this service; it takes no address that it was not told beforehand. */
function baseOf({ config }: OAuthNeeds, call: Call): string {
  if (config.publicUrl !== null) return config.publicUrl;
  const host = call.headers.get('host') ?? '';
  const url = `${config.tlsCertFile !== null || config.trustTlsProxy ? 'https' : 'http'}://${host}`;
  const isHost = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/.test(host) && URL.canParse(url);
  if (!isHost) throw new ApiError('INVALID_REQUEST', { errors: [{ path: '/headers/host', message: 'must be a host name' }] });
  return new URL(url).origin;
}

async function finish(needs: OAuthNeeds, call: Call, target: Provider, flow: Flow, state: string): Promise<Ending> {
  const person = await target.redeem(flow, state, call.query);
  const userId = await accountOfPerson(needs, call, target.id, person);
  const entered = await enterAs(needs, call, userId);
  return 'mfaToken' in entered ? due(entered) : delivered(entered);
}

const due = ({ mfaToken, methods, expiresIn }: Challenge): Ending => ({ mfa_token: mfaToken, methods: methods.join(','), expires_in: expiresIn });

const delivered = ({ accessToken, refresh, expiresIn }: Tokens): Ending => ({ access_token: accessToken, refresh_token: refresh.text, jti: refresh.jti, token_type: 'Bearer', expires_in: expiresIn });

/** The account may change while it is looked at; more often than this it is no coincidence. */
const TRIES = 3;

/**
 * Signs an account in that its provider has proven, past the same gate as a password; a second factor stays due.
 * @throws ApiError ACCOUNT_LOCKED, LOGIN_THROTTLED, ACCOUNT_DELETED, ACCOUNT_INACTIVE
 */
async function enterAs(needs: OAuthNeeds, call: Call, userId: string): Promise<Tokens | Challenge> {
  const source = sourceOf(needs.keyring, call);
  const reread = (): Promise<LoginAccount | null> => needs.accountOf({ by: 'id', value: userId, source });
  const first = await reread();
  if (!first) throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
  const attempt: Attempt = { email: first.email, account: first, source, reread, call, action: 'oauth' };
  const ticket = await enter(needs, attempt);
  return releaseOnThrow(needs, ticket, async () => {
    for (let tries = 1, account: LoginAccount | null = first; account && tries <= TRIES; tries += 1, account = await reread()) {
      demandUsable(account, needs.config);
      const entered = await proceed(needs, { ...attempt, account }, ticket);
      if (entered) return entered;
    }
    throw new ApiError('UNAVAILABLE', { retryAfter: 1 });
  });
}

/** What a proven account gets; null when it changed meanwhile. */
function proceed(needs: OAuthNeeds, attempt: Attempt & { account: LoginAccount }, ticket: Ticket): Promise<Tokens | Challenge | null> {
  const { account } = attempt;
  if (account.factors.length > 0) return challenge(needs, attempt, ticket, { firstFactor: 'fed', device: null });
  const draft = draftSession(needs.keyring, account.id, ['fed'], FIRST_USE_MS);
  // A node that cannot sign now must say so before a session is opened.
  const job = draftJob(needs, account, draft);
  return enterSession(needs, attempt, ticket, { draft, accessToken: () => needs.signing.sign(job) });
}

/** What the client is told of a flow that opened nothing. */
function refusal({ log, metrics }: OAuthNeeds, call: Call, target: Provider, error: unknown): Ending {
  const refused = refusalOf(error);
  const { code, extras } = refused;
  // What the gate refuses is counted there.
  if (!(error instanceof ApiError)) metrics.logins.inc({ outcome: code });
  const line = { requestId: call.requestId, action: 'oauth', provider: target.id, outcome: code, ip: call.ip };
  if (code === 'internal') log.error({ ...line, err: error }, 'request failed');
  // Often a mistake in the settings on either side, which nobody else would see.
  else if (code.startsWith('provider_')) log.warn({ ...line, reason: reasonOf(refused) }, 'attempt refused');
  else log.info({ ...line, reason: reasonOf(refused) }, 'attempt refused');
  const { retryAfter, permanentDeletionAt } = extras;
  return { error: code, ...(retryAfter === undefined ? {} : { retry_after: retryAfter }), ...(permanentDeletionAt === undefined ? {} : { permanent_deletion_at: permanentDeletionAt }) };
}
