import { Type } from '@sinclair/typebox';
import { randomBytes } from 'node:crypto';
import type { Deps } from '../deps.js';
import { sha256 } from '../keyring.js';
import { tell } from '../notify/notices.js';
import { replaceToken, type TokenPurpose } from '../store/account-tokens.js';
import type { Owner } from '../store/deletions.js';
import type { Tx } from '../store/mysql.js';

type Needs = Pick<Deps, 'config' | 'keyring' | 'clock'>;

/** A token as it comes back. */
export const mailedToken = Type.String({ minLength: 1, maxLength: 128, examples: ['vK3bY0kqTn1m8Gd0o5xW2sQeRfUhJzLpAiCtBvNwXyE'] });

/** By purpose: the message, the page below LINK_BASE_URL, and the setting with the lifetime in minutes. */
const PURPOSES = {
  verify_email: { template: 'email_verification_requested', page: 'verify-email', ttl: 'emailVerificationTtlMin' },
  reset_password: { template: 'password_reset_requested', page: 'reset-password', ttl: 'passwordResetTtlMin' },
} as const satisfies Record<TokenPurpose, unknown>;

const BYTES = 32;

/** Mails a new token to the address as it is stored; from the commit on the one before is void. */
export async function mailToken(tx: Tx, needs: Needs, owner: Owner, purpose: TokenPurpose): Promise<void> {
  const { config, clock } = needs;
  const { template, page, ttl } = PURPOSES[purpose];
  const lifeMs = config[ttl] * 60_000;
  const token = randomBytes(BYTES).toString('base64url');
  await replaceToken(tx, { hash: hashOfToken(token), userId: owner.id, purpose, lifeMs });
  // In the fragment: it reaches the page, and neither the log of a web server nor a Referer header.
  const link = config.linkBaseUrl === null ? '' : `${config.linkBaseUrl}/${page}#token=${token}`;
  const expiresAt = new Date(clock.now() + lifeMs).toISOString();
  await tell(tx, needs, owner, [{ channel: 'EMAIL', to: owner.email }], template, { token, link, expiresAt });
}

/** What is stored of a token. Its 256 random bits need no salt and no slow hash. */
export const hashOfToken = (token: string): Buffer => sha256(token);
