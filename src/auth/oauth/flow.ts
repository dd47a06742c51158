import { randomBytes } from 'node:crypto';
import type { Deps } from '../../deps.js';
import { sha256 } from '../../keyring.js';
import { KEYS, reply } from '../../store/redis.js';

/** A sign-in that was sent to a provider and waits for the answer. */
export interface Flow {
  provider: string;
  /** Where its client wants the tokens. */
  redirectUri: string;
  /** What the client wants back beside them, to know its own flow by. */
  clientState: string | null;
  /** Where the provider sends the browser back to. */
  callback: string;
  nonce: string;
  /** The secret half of PKCE (RFC 7636). */
  verifier: string;
}

/** How long people may take at their provider, in ms. */
const FLOW_MS = 600_000;

type Needs = Pick<Deps, 'redis' | 'keyring'>;

// The state itself is stored nowhere: who reads Redis can neither finish a flow nor open what is kept of it.
const nameOf = (state: string): string => sha256(state).toString('base64url');

/**
 * Keeps a flow and gives the state that names it.
 * @throws ApiError UNAVAILABLE
 */
export async function keepFlow({ redis, keyring }: Needs, flow: Flow): Promise<string> {
  const state = randomBytes(32).toString('base64url');
  const name = nameOf(state);
  const sealed = keyring.seal('oauth-flow', Buffer.from(JSON.stringify(flow)), name).toString('base64url');
  await reply(redis.set(KEYS.oauthFlow(name), sealed, 'PX', FLOW_MS));
  return state;
}

/**
 * Takes the flow of a state: of any number of callers one gets it, once.
 * @throws ApiError UNAVAILABLE
 */
export async function takeFlow({ redis, keyring }: Needs, state: string): Promise<Flow | null> {
  const name = nameOf(state);
  const sealed = await reply(redis.getdel(KEYS.oauthFlow(name)));
  const plain = sealed === null ? null : keyring.open('oauth-flow', Buffer.from(sealed, 'base64url'), name);
  return plain === null ? null : (JSON.parse(plain.toString()) as Flow);
}
