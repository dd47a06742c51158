import type { Keyring } from '../keyring.js';
import type { Source } from '../store/login-accounts.js';
import type { Call } from '../http/call.js';

/** What the gate counts by: a keyed hash, so that no store holds the address and unknown addresses behave the same. */
export const identityHash = (keyring: Keyring, normalisedEmail: string): Buffer => keyring.mac('identity', normalisedEmail);

/** The same as Redis keys name it. */
export const identityOf = (keyring: Keyring, normalisedEmail: string): string => identityHash(keyring, normalisedEmail).toString('base64url');

/** Network and device of a call, keyed; version numbers in the user agent do not make a new device. */
export function sourceOf(keyring: Keyring, call: Pick<Call, 'network' | 'userAgent'>): Source {
  const device = call.userAgent.replace(/\d+/g, '');
  return {
    network: keyring.mac('source', 'network', call.network).subarray(0, 16),
    device: keyring.mac('source', 'device', device).subarray(0, 16),
  };
}

/** Name of a source in Redis keys. */
export const sourceName = (source: Source): string => Buffer.concat([source.network, source.device]).toString('base64url');
