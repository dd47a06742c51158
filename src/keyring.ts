import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

/** What each derived key is for. A new use gets a new word, never an old one. */
export type Purpose = 'identity' | 'subject' | 'source' | 'limit' | 'refresh' | 'successor' | 'csrf' | 'otp' | 'recovery-code' | 'totp-secret' | 'signing-key' | 'notification' | 'webhook' | 'oauth-flow' | 'secret-name' | 'cursor';

/** Keys derived from SECRET_KEY by purpose (HKDF-SHA256, RFC 5869); new values always use the current secret. */
export interface Keyring {
  /** HMAC-SHA256, 32 bytes. */
  mac(purpose: Purpose, ...parts: (string | Buffer)[]): Buffer;
  /** The same under every accepted secret, the current one first. */
  macs(purpose: Purpose, ...parts: (string | Buffer)[]): Buffer[];
  /** Whether `tag`, of 16 bytes or more, begins a MAC under any accepted secret; constant time. */
  proves(purpose: Purpose, tag: Buffer, ...parts: (string | Buffer)[]): boolean;
  /** AES-256-GCM: nonce, ciphertext and tag in one buffer; `context` is authenticated, not stored. */
  seal(purpose: Purpose, plain: Buffer, context: string): Buffer;
  /** The plain text, or null when it was sealed under an unknown secret or context. */
  open(purpose: Purpose, sealed: Buffer, context: string): Buffer | null;
  /** The same under the current secret, the buffer given when it is that already, null when `open` gives null. */
  reseal(purpose: Purpose, sealed: Buffer, context: string): Buffer | null;
}

const NONCE = 12;
const TAG = 16;

export function createKeyring(secret: Buffer, previous: Buffer | null): Keyring {
  const rings = [secret, ...(previous === null ? [] : [previous])].map((root) => {
    const derived = new Map<Purpose, Buffer>();
    return (purpose: Purpose): Buffer => {
      const known = derived.get(purpose);
      if (known) return known;
      const key = Buffer.from(hkdfSync('sha256', root, '', `portcullis ${purpose}`, 32));
      derived.set(purpose, key);
      return key;
    };
  });
  const current = rings[0]!;

  const seal: Keyring['seal'] = (purpose, plain, context) => {
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', current(purpose), nonce).setAAD(Buffer.from(context));
    return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  };
  const open: Keyring['open'] = (purpose, sealed, context) => {
    for (const key of rings) {
      const plain = unseal(key(purpose), sealed, context);
      if (plain) return plain;
    }
    return null;
  };

  return {
    seal,
    open,
    mac: (purpose, ...parts) => hmac(current(purpose), parts),
    macs: (purpose, ...parts) => rings.map((key) => hmac(key(purpose), parts)),
    proves: (purpose, tag, ...parts) => tag.length >= TAG && rings.some((key) => equal(hmac(key(purpose), parts).subarray(0, tag.length), tag)),
    reseal(purpose, sealed, context) {
      if (unseal(current(purpose), sealed, context)) return sealed;
      const plain = open(purpose, sealed, context);
      return plain && seal(purpose, plain, context);
    },
  };
}

// Each part is preceded by its length, so that no two lists of parts give one input.
function hmac(key: Buffer, parts: (string | Buffer)[]): Buffer {
  const mac = createHmac('sha256', key);
  const length = Buffer.alloc(4);
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    length.writeUInt32BE(bytes.length);
    mac.update(length).update(bytes);
  }
  return mac.digest();
}

function unseal(key: Buffer, sealed: Buffer, context: string): Buffer | null {
  if (sealed.length < NONCE + TAG) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE), { authTagLength: TAG }).setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-TAG));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()]);
  } catch {
    return null;
  }
}

/** Constant-time comparison of byte strings; a difference in length is not hidden. */
export const equal = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

export const sha256 = (data: Buffer | string): Buffer => hash('sha256', data, 'buffer');

/** The keyed hash of a user id: names a person in logs and in the audit after the purge, to nobody else. */
export const subjectOf = (keyring: Keyring, userId: string): string => keyring.mac('subject', userId).toString('base64url');
