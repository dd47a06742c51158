import { randomBytes } from 'node:crypto';
import { parse, stringify } from 'uuid';
import { equal, sha256, type Keyring } from '../keyring.js';

/**
 * A refresh token: session id (16 bytes), generation (4), secret (32), MAC (16), in base64url.
 * The MAC proves without any stored history that the token was issued here.
 */
export interface RefreshToken {
  sessionId: string;
  generation: number;
  secret: Buffer;
  /** The token as the client holds it. */
  text: string;
}

/** A refresh token as it is given out. */
export interface MintedToken extends RefreshToken {
  /** Its id: changes with every rotation and belongs to this token alone. */
  jti: string;
}

const SECRET = 32;
const MAC = 16;
const LENGTH = 16 + 4 + SECRET + MAC;

export const newSecret = (): Buffer => randomBytes(SECRET);

export function mintRefreshToken(keyring: Keyring, sessionId: string, generation: number, secret: Buffer): MintedToken {
  const payload = payloadOf(sessionId, generation, secret);
  const text = Buffer.concat([payload, keyring.mac('refresh', 'token', payload).subarray(0, MAC)]).toString('base64url');
  return { sessionId, generation, secret, text, jti: jtiOf(keyring, payload) };
}

/** Reads a token that was issued here; null for every other text, so that garbage never costs a look at the store. */
export function readRefreshToken(keyring: Keyring, text: string): RefreshToken | null {
  if (text.length !== Math.ceil((LENGTH * 4) / 3)) return null;
  const bytes = Buffer.from(text, 'base64url');
  // The last letter has bits to spare: only one spelling counts, or one token would pass for several.
  if (bytes.toString('base64url') !== text) return null;
  const payload = bytes.subarray(0, LENGTH - MAC);
  if (!keyring.proves('refresh', bytes.subarray(LENGTH - MAC), 'token', payload)) return null;
  return { sessionId: stringify(payload.subarray(0, 16)), generation: payload.readUInt32BE(16), secret: payload.subarray(20), text };
}

/** Whether a jti that came along belongs to the token; under rotation of SECRET_KEY the former one counts too. */
export const hasJti = (keyring: Keyring, token: RefreshToken, jti: string): boolean =>
  keyring.macs('refresh', 'jti', payloadOf(token.sessionId, token.generation, token.secret)).some((mac) => equal(Buffer.from(mac.subarray(0, MAC).toString('base64url')), Buffer.from(jti)));

const jtiOf = (keyring: Keyring, payload: Buffer): string => keyring.mac('refresh', 'jti', payload).subarray(0, MAC).toString('base64url');

function payloadOf(sessionId: string, generation: number, secret: Buffer): Buffer {
  const counter = Buffer.alloc(4);
  counter.writeUInt32BE(generation);
  return Buffer.concat([parse(sessionId), counter, secret]);
}

/**
 * Seals the successor's secret under its predecessor's (one-time pad from an HMAC of the predecessor):
 * with the stored seal, and only with it, a holder of the predecessor can be given the same successor.
 */
export const sealSuccessor = (keyring: Keyring, predecessor: RefreshToken, successor: Buffer): Buffer => xor(padOf(keyring.mac('successor', predecessor.text)), successor);

/** The successor's secret, or null when the seal was not made for this predecessor. */
export function openSuccessor(keyring: Keyring, predecessor: RefreshToken, seal: Buffer, successorHash: Buffer): Buffer | null {
  for (const mac of keyring.macs('successor', predecessor.text)) {
    const secret = xor(padOf(mac), seal);
    if (equal(sha256(secret), successorHash)) return secret;
  }
  return null;
}

const padOf = (mac: Buffer): Buffer => mac.subarray(0, SECRET);
const xor = (a: Buffer, b: Buffer): Buffer => Buffer.from(a.map((byte, i) => byte ^ b[i]!));
