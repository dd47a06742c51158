import t from 'tap';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../src/http/server.js';
import { startApp } from '../support/app.js';
import { converse, exchange, request } from '../support/raw.js';

t.test('with a certificate the service speaks TLS alone, says so by HSTS, and takes its https origin', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-tls-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  try {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', key, '-out', cert], { stdio: 'pipe' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      t.comment('openssl is not installed');
      return;
    }
    throw error;
  }
  const { app, account } = await startApp(t, { TLS_CERT_FILE: cert, TLS_KEY_FILE: key });
  const { email, password } = await account();
  const login = async (origin: string) => {
    const talk = await converse(app.port, { tls: true });
    talk.send(request('POST /api/auth/login', ['Content-Type: application/json', 'X-Token-Delivery: cookie', `Origin: ${origin}`], JSON.stringify({ email, password })));
    const reply = await talk.reply();
    talk.socket.destroy();
    return reply;
  };
  const reply = await login('https://localhost');
  t.match(reply, { status: 200, body: '{"ok":true}' });
  t.same(reply.headers.get('strict-transport-security'), ['max-age=31536000; includeSubDomains']);
  t.equal(reply.headers.get('set-cookie')?.length, 4);
  t.equal((await login('http://localhost')).status, 403, 'the same host without TLS is another origin');
  await t.rejects(exchange(app.port, request('GET /health/live')), 'plain HTTP is not answered');
  const garbage = join(folder, 'garbage.pem');
  writeFileSync(garbage, 'no certificate');
  const options = { host: '127.0.0.1', port: 0, handle: () => Promise.resolve({ status: 204 }), refuse: () => ({ status: 400, body: '' }) };
  for (const certFile of [garbage, join(folder, 'absent.pem')]) await t.rejects(listen({ ...options, tls: { certFile, keyFile: key } }), /pem are not a readable PEM certificate/, 'a bad certificate stops the start');
});
