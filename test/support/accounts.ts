import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { v4 as uuid } from 'uuid';
import { recoveryCodeHashes, sealTotpSecret } from '../../src/auth/factors.js';
import type { Deps } from '../../src/deps.js';
import { insertFactor, putRecoveryCodes } from '../../src/store/mfa.js';
import { keepSecret } from './secrets.js';

export interface NewAccount {
  email?: string;
  password?: string;
  passwordHash?: string | null;
  status?: 'active' | 'disabled';
  deletedAt?: Date | null;
  verified?: boolean;
  phone?: string;
}

export interface Account {
  id: string;
  email: string;
  password: string;
}

let count = 0;

/** Inserts an account; everything may be chosen. */
export async function createAccount({ mysql, hashing }: Pick<Deps, 'mysql' | 'hashing'>, wanted: NewAccount = {}): Promise<Account> {
  const id = uuid();
  const email = wanted.email ?? `user${(count += 1)}-${randomBytes(3).toString('hex')}@example.com`;
  const password = wanted.password ?? `correct horse ${randomBytes(12).toString('base64url')}`;
  keepSecret(password, 'password of an account');
  const hash = wanted.passwordHash === undefined ? await hashing.hash(password, { network: 'tests' }) : wanted.passwordHash;
  const verified = wanted.verified === false ? null : new Date();
  await mysql.run('INSERT INTO users (id, email, phone, status, password_hash, email_verified_at, phone_verified_at, deleted_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)', [
    id,
    email,
    wanted.phone ?? null,
    wanted.status ?? 'active',
    hash,
    verified,
    wanted.phone === undefined ? null : verified,
    wanted.deletedAt ?? null,
  ]);
  return { id, email, password };
}

/** Gives an account an authenticator app; the function returned shows its code at a time. */
export async function addTotp({ mysql, keyring }: Pick<Deps, 'mysql' | 'keyring'>, userId: string): Promise<(at?: number) => string> {
  const id = uuid();
  const secret = randomBytes(20);
  keepSecret(new Secret({ buffer: Uint8Array.from(secret).buffer }).base32, 'secret of an authenticator app');
  await mysql.transaction((tx) => insertFactor(tx, { id, userId, method: 'totp', secret: sealTotpSecret(keyring, id, secret), verified: true }));
  const totp = new TOTP({ secret: new Secret({ buffer: Uint8Array.from(secret).buffer }) });
  return (at = Date.now()) => totp.generate({ timestamp: at });
}

export async function addRecoveryCodes({ mysql, keyring }: Pick<Deps, 'mysql' | 'keyring'>, userId: string, codes: string[]): Promise<void> {
  for (const code of codes) keepSecret(code, 'recovery code');
  await mysql.transaction((tx) => putRecoveryCodes(tx, userId, codes.map((code) => recoveryCodeHashes(keyring, userId, code)[0]!)));
}
