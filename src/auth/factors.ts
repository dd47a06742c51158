import { Secret, TOTP } from 'otpauth';
import type { Keyring } from '../keyring.js';
import type { TotpFactor } from '../store/mfa.js';

/** SHA-1, 6 digits, 30 s: what authenticator apps agree on (RFC 6238). */
const PERIOD_S = 30;
/** Steps that a client's clock may be off, each way. */
const WINDOW = 1;

/** The time step of a right code, or null. `now` in ms. */
export function totpStep(keyring: Keyring, factor: TotpFactor, code: string, now: number): number | null {
  const secret = keyring.open('totp-secret', factor.secret, factor.id);
  if (!secret || !/^\d{6}$/.test(code)) return null;
  const totp = new TOTP({ secret: new Secret({ buffer: Uint8Array.from(secret).buffer }), period: PERIOD_S });
  const delta = totp.validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? null : Math.floor(now / 1000 / PERIOD_S) + delta;
}

export const sealTotpSecret = (keyring: Keyring, factorId: string, secret: Buffer): Buffer => keyring.seal('totp-secret', secret, factorId);

/** Hashes that a recovery code may be stored under; case, spaces and dashes are how people copy it. */
export const recoveryCodeHashes = (keyring: Keyring, userId: string, code: string): Buffer[] => keyring.macs('recovery-code', userId, code.replace(/[\s-]/g, '').toLowerCase());
