import { importPKCS8, SignJWT, type CryptoKey } from 'jose';
import type { SigningJob } from './protocol.js';

const imported = new Map<string, Promise<CryptoKey>>();

/** Signs an access token (RFC 9068: typ at+jwt) and gives its compact form. */
export default async function sign({ alg, kid, privateKey, claims }: SigningJob): Promise<string> {
  let key = imported.get(kid);
  if (!key) imported.set(kid, (key = importPKCS8(privateKey, alg)));
  return new SignJWT(claims).setProtectedHeader({ alg, kid, typ: 'at+jwt' }).sign(await key);
}
