import { decodeProtectedHeader, exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import t from 'tap';
import { signJws } from '../../workers/jws.js';
import type { SigningJob } from '../../workers/protocol.js';

const ALGS = ['ES256', 'EdDSA', 'RS256'] as const;
const claims = { sub: 'ä "quoted" 漢', n: 1, roles: ['a', 'b'], nested: { empty: {} } };

async function pair(alg: SigningJob['alg'], kid: string): Promise<{ job: SigningJob; publicKey: Awaited<ReturnType<typeof generateKeyPair>>['publicKey'] }> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { publicKey, job: { alg, kid, privateKey: await exportPKCS8(privateKey), claims } };
}

for (const alg of ALGS) {
  t.test(`what is signed by ${alg} is what jose verifies, with that key and that algorithm only`, async (t) => {
    const { job, publicKey } = await pair(alg, `verified-${alg}`);
    for (let i = 0; i < 20; i += 1) {
      const { payload, protectedHeader } = await jwtVerify(signJws(job), publicKey, { algorithms: [alg], typ: 'at+jwt' });
      t.same(payload, claims);
      t.same(protectedHeader, { alg, kid: job.kid, typ: 'at+jwt' });
    }
    const other = await pair(alg, 'other');
    await t.rejects(jwtVerify(signJws(job), other.publicKey), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' });
    const [head, , signature] = signJws(job).split('.');
    await t.rejects(jwtVerify(`${head!}.${Buffer.from('{"sub":"x"}').toString('base64url')}.${signature!}`, publicKey), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' });
  });
}

t.test('many keys after each other are each used for their own tokens, also those that were dropped meanwhile', async (t) => {
  const keys = await Promise.all(Array.from({ length: 12 }, (_, i) => pair(i % 2 ? 'EdDSA' : 'ES256', `key-${i}`)));
  for (const { job, publicKey } of [...keys, ...keys.reverse()]) {
    const token = signJws(job);
    t.equal(decodeProtectedHeader(token).kid, job.kid);
    await t.resolves(jwtVerify(token, publicKey));
  }
});

t.test('keys that have not been used for a while are not kept', async (t) => {
  const kept = await pair('ES256', 'kept');
  signJws(kept.job);
  t.doesNotThrow(() => signJws({ ...kept.job, privateKey: 'not looked at' }), 'read once');
  for (let i = 0; i < 4; i += 1) signJws((await pair('ES256', `newer-${i}`)).job);
  t.throws(() => signJws({ ...kept.job, privateKey: 'looked at' }), 'and read again after four others');
});
