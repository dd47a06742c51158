import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import t from 'tap';
import type { ApiError } from '../../../src/errors.js';
import { createLog } from '../../../src/log.js';
import { createSigning } from '../../../src/pools/signing.js';

t.test('many tokens are signed at once, each with its own claims', async (t) => {
  const signing = createSigning(createLog('silent'));
  t.teardown(() => signing.close());
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = { alg: 'ES256' as const, kid: 'k', privateKey: await exportPKCS8(privateKey) };
  const tokens = await Promise.all(Array.from({ length: 100 }, (_, n) => signing.sign({ ...key, claims: { n } })));
  for (const [n, token] of tokens.entries()) {
    const { payload, protectedHeader } = await jwtVerify(token, publicKey);
    t.same(payload, { n });
    t.same(protectedHeader, { alg: 'ES256', kid: 'k', typ: 'at+jwt' });
  }
});

for (const alg of ['EdDSA', 'RS256'] as const) {
  t.test(`what is signed by ${alg} is what others verify`, async (t) => {
    const signing = createSigning(createLog('silent'));
    t.teardown(() => signing.close());
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    const token = await signing.sign({ alg, kid: 'k', privateKey: await exportPKCS8(privateKey), claims: { n: 1 } });
    t.match(await jwtVerify(token, publicKey, { algorithms: [alg], typ: 'at+jwt' }), { payload: { n: 1 }, protectedHeader: { alg, kid: 'k' } });
  });
}

t.test('a key that cannot be used is a fault of ours, and the thread goes on', async (t) => {
  const signing = createSigning(createLog('silent'));
  t.teardown(() => signing.close());
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const broken = await signing.sign({ alg: 'ES256', kid: 'b', privateKey: 'no key', claims: {} }).catch((error: unknown) => (error as ApiError).code);
  t.equal(broken, 'UNAVAILABLE');
  t.match(await signing.sign({ alg: 'ES256', kid: 'k', privateKey: await exportPKCS8(privateKey), claims: {} }), /^[\w-]+\.[\w-]+\.[\w-]+$/);
});
