import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Keyring } from '../keyring.js';
import type { TotpFactor } from '../store/mfa.js';

/** SHA-1, 6 digits, 30 s: what authenticator apps agree on (RFC 6238). */
const PERIOD_S = 30;
/** Steps that a client's clock may be off, each way. */
const WINDOW = 1;

/** Bytes of a secret: the length of the HMAC, as RFC 4226 §4 recommends. */
const SECRET_BYTES = 20;

const appOf = (secret: Buffer): TOTP => new TOTP({ secret: new Secret({ buffer: Uint8Array.from(secret).buffer }), period: PERIOD_S });

/** A new secret for an authenticator app, as its owner types it (`text`, base32) and scans it (`url`). */
export function newTotpSecret(issuer: string, email: string): { bytes: Buffer; text: string; url: string } {
  const bytes = randomBytes(SECRET_BYTES);
  const app = appOf(bytes);
  app.issuer = issuer;
  app.label = email;
  return { bytes, text: app.secret.base32, url: app.toString() };
}

/** The time step of a right code, or null. `now` in ms. */
export function totpStep(keyring: Keyring, factor: TotpFactor, code: string, now: number): number | null {
  const secret = keyring.open('totp-secret', factor.secret, factor.id);
  if (!secret || !/^\d{6}$/.test(code)) return null;
  const delta = appOf(secret).validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? null : Math.floor(now / 1000 / PERIOD_S) + delta;
}

export const sealTotpSecret = (keyring: Keyring, factorId: string, secret: Buffer): Buffer => keyring.seal('totp-secret', secret, factorId);

/** Crockford's base32: no two letters look alike. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** A new recovery code: 80 random bits as xxxx-xxxx-xxxx-xxxx. */
export function newRecoveryCode(): string {
  const letters = Array.from(randomBytes(16), (byte) => ALPHABET[byte & 31]!).join('');
  return letters.replace(/(.{4})(?=.)/g, '$1-');
}

/** Hashes that a recovery code may be stored under; case, spaces, dashes and letters for digits are how people copy it. */
export const recoveryCodeHashes = (keyring: Keyring, userId: string, code: string): Buffer[] => keyring.macs('recovery-code', userId, code.replace(/[\s-]/g, '').toLowerCase().replace(/o/g, '0').replace(/[il]/g, '1'));
