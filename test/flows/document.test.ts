import t from 'tap';
import { settings } from '../../src/config/load.js';
import { createDocument, type Document } from '../../src/openapi/document.js';
import { OPS_ROUTES } from '../../src/ops/routes.js';
import { startApp, type TestApp } from '../support/app.js';
import { isForUsers, probesOf, sendExample, sendRaw, signIn, target, type Probe } from '../support/probes.js';
import { startProxy } from '../support/proxy.js';
import { freshDatabase } from '../support/stores.js';

/** The document as the service gives it away, replayed against the service: what an endpoint declares is what it answers. */
const published = async (service: Awaited<ReturnType<typeof startApp>>): Promise<Document> => (await service.client().request('GET', '/openapi.json')).body as unknown as Document;

const JSON_TYPE: [string, string] = ['Content-Type', 'application/json'];

t.test('every endpoint refuses what is too large, badly framed, of another type, without credential, from another site or not there', async (t) => {
  const service = await startApp(t);
  const caller = await signIn(service);
  const probes = probesOf(await published(service));
  t.ok(probes.length > 15, `${probes.length} endpoints`);
  const refuse = async (port: number, probe: Probe): Promise<void> => {
    const name = `${probe.method} ${probe.path}`;
    const expect = async (code: string, status: number, reply: ReturnType<typeof sendRaw>): Promise<void> => {
      const { status: got, problem } = await reply;
      t.match({ status: got, code: problem['code'] }, { status, code }, `${name}: ${code}`);
    };
    const bearer = isForUsers(probe) ? caller.bearer : {};
    await expect('PAYLOAD_TOO_LARGE', 413, sendRaw(port, probe, [JSON_TYPE], JSON.stringify({ x: 'x'.repeat(17 * 1024) })));
    await expect('INVALID_REQUEST', 400, sendRaw(port, probe, [JSON_TYPE, JSON_TYPE]));
    if (probe.codes.has('UNSUPPORTED_MEDIA_TYPE')) await expect('UNSUPPORTED_MEDIA_TYPE', 415, sendRaw(port, probe, { ...bearer, 'Content-Type': 'text/plain' }, '{}'));
    if (probe.codes.has('UNAUTHENTICATED')) await expect('UNAUTHENTICATED', 401, sendRaw(port, probe, {}));
    if (probe.codes.has('CSRF_FAILED')) await expect('CSRF_FAILED', 403, sendRaw(port, probe, { ...caller.cookies, 'X-Token-Delivery': 'cookie', 'Origin': 'https://elsewhere.example' }));
    if (probe.codes.has('NOT_FOUND') && probe.path.includes('{')) await expect('NOT_FOUND', 404, sendRaw(port, probe, bearer, undefined, target(probe, '%00')));
  };
  await Promise.all([...probes.map((probe) => refuse(service.app.port, probe)), ...probesOf(createDocument(OPS_ROUTES)).map((probe) => refuse(service.app.opsPort, probe))]);
});

t.test('every endpoint that has a limit keeps it', async (t) => {
  const limits = settings().map(([, { env }]) => env).filter((env) => env.startsWith('LIMIT_'));
  const service = await startApp(t, Object.fromEntries(limits.map((env) => [env, '1/60'])));
  for (const [n, probe] of probesOf(await published(service)).entries()) {
    if (!probe.codes.has('RATE_LIMITED')) continue;
    const caller = await signIn(service);
    const client = service.client({ ip: `192.0.2.${n}` });
    const codes = [await sendExample(probe, caller, client), await sendExample(probe, caller, client)].map(({ body }) => body['code']);
    t.equal(codes[1], 'RATE_LIMITED', `${probe.method} ${probe.path}`);
  }
});

/** So many callers, one after the other: all at once they meet the patience with the stores on a machine that is busy. */
async function signedIn(service: TestApp, n: number): Promise<Awaited<ReturnType<typeof signIn>>[]> {
  const callers = [];
  while (callers.length < n) callers.push(await signIn(service));
  return callers;
}

for (const store of ['MySQL', 'Redis'] as const) {
  t.test(`while ${store} is down every endpoint answers as it declares`, async (t) => {
    const url = await freshDatabase(t);
    const proxy = await startProxy(t, url);
    const service = await startApp(t, { MYSQL_URL: proxy.via(url) });
    const probes = probesOf(await published(service));
    const callers = await signedIn(service, probes.length);
    await (store === 'MySQL' ? proxy.become('refuse') : service.redis.stop());
    for (const [n, probe] of probes.entries()) {
      const { status, body } = await sendExample(probe, callers[n]!);
      const name = `${probe.method} ${probe.path}`;
      t.not(status, 500, name);
      if (store === 'MySQL' && isForUsers(probe)) t.equal(body['code'], 'UNAVAILABLE', name);
    }
  });
}

t.test('without its tables every endpoint that needs them answers 500, and says no more', async (t) => {
  const service = await startApp(t);
  const { mysql } = service.app.needs;
  const probes = probesOf(await published(service));
  const callers = await signedIn(service, probes.length);
  const tables = await mysql.rows<{ name: string }>('SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()');
  await mysql.transaction(async (tx) => {
    await tx.run('SET foreign_key_checks = 0');
    await tx.run(`DROP TABLE ${tables.map(({ name }) => name).join(', ')}`);
    await tx.run('SET foreign_key_checks = 1');
  });
  for (const [n, probe] of probes.entries()) {
    const { status, body } = await sendExample(probe, callers[n]!);
    if (isForUsers(probe)) t.equal(status, 500, `${probe.method} ${probe.path}`);
    if (status === 500) t.same(Object.keys(body).sort(), ['code', 'requestId', 'status', 'title'], `${probe.method} ${probe.path}`);
  }
});
