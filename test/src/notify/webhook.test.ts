import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { startSender } from '../../../src/notify/sender.js';
import { webhookKey } from '../../../src/notify/webhook.js';
import { CODE, codeMail, counted, notifyNeeds, queue, settled } from '../../support/notify.js';

interface Call {
  headers: IncomingHttpHeaders;
  body: string;
}

/** A provider that answers with the given statuses in turn, the last one from then on; 0 never answers. */
async function provider(t: Test, ...statuses: number[]): Promise<{ url: string; calls: Call[] }> {
  const calls: Call[] = [];
  const server = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk: Buffer) => (body += chunk.toString()));
    req.on('end', () => {
      calls.push({ headers: req.headers, body });
      const status = statuses[Math.min(calls.length, statuses.length) - 1]!;
      if (status !== 0) res.writeHead(status, { location: '/elsewhere' }).end('ada@example.com is unknown');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`, calls };
}

const sms = codeMail({ channel: 'SMS', to: '+4915112345' });

/** What a receiver does, from the key that the operator gave it. */
function isSigned(key: string, { headers, body }: Call): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', key).update(`${String(headers['x-portcullis-timestamp'])}.${body}`).digest('hex')}`);
  const given = String(headers['x-portcullis-signature']).split(', ').map((one) => Buffer.from(one));
  return given.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
}

async function sent(t: Test, env: Record<string, string>, timing = {}) {
  const { needs, lines } = await notifyNeeds(t, env);
  const sender = startSender(needs, { timing: { pollMs: 10, backoffMs: 1, ...timing } });
  t.teardown(() => sender.close());
  await queue(needs, sms);
  const [row] = await settled(needs);
  return { needs, lines, row: row! };
}

t.test('a provider gets id, number, text and template, signed so that it can check', async (t) => {
  const { url, calls } = await provider(t, 202);
  const { needs, row } = await sent(t, { SMS_URL: url.replace('//', '//user:p%40ss@') });
  const [call] = calls;
  t.match(JSON.parse(call!.body), { id: row.id, to: '+4915112345', text: CODE, template: 'account_deletion_requested' });
  t.same(Object.keys(JSON.parse(call!.body) as object), ['id', 'to', 'text', 'template']);
  t.match(call!.headers, { 'content-type': 'application/json', 'idempotency-key': row.id, authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}` });
  t.ok(Math.abs(Number(call!.headers['x-portcullis-timestamp']) - Date.now() / 1000) < 60);
  t.ok(isSigned(webhookKey(needs.keyring, 'SMS'), call!));
  t.notOk(isSigned(webhookKey(needs.keyring, 'WHATSAPP'), call!), 'another channel has another key');
  t.notOk(isSigned(webhookKey(needs.keyring, 'SMS'), { ...call!, body: call!.body.replace('49', '43') }), 'a changed body');
  t.notOk(isSigned(webhookKey(needs.keyring, 'SMS'), { ...call!, headers: { ...call!.headers, 'x-portcullis-timestamp': '1' } }), 'a changed time');
});

t.test('while SECRET_KEY is replaced, the former key of a receiver still checks', async (t) => {
  const { url, calls } = await provider(t, 200);
  const { needs: before } = await notifyNeeds(t);
  await sent(t, { SMS_URL: url, SECRET_KEY: Buffer.alloc(32, 8).toString('base64'), SECRET_KEY_PREVIOUS: Buffer.alloc(32, 7).toString('base64') });
  t.ok(isSigned(webhookKey(before.keyring, 'SMS'), calls[0]!));
});

t.test('408, 429, 5xx and redirects are tried again with the same id', async (t) => {
  const { url, calls } = await provider(t, 408, 429, 503, 307, 200);
  const { needs, row } = await sent(t, { SMS_URL: url });
  t.match(row, { attempts: 5, failed_at: null, last_error: null });
  t.ok(row.sent_at);
  t.same(new Set(calls.map((call) => call.headers['idempotency-key'])).size, 1);
  t.equal(calls.length, 5);
  t.equal(await counted(needs, 'SMS', 'retried'), 4);
});

t.test('any other 4xx is final, and what the provider says is not kept', async (t) => {
  const { url, calls } = await provider(t, 422);
  const { row, lines } = await sent(t, { SMS_URL: url });
  t.match(row, { attempts: 1, sent_at: null, last_error: 'http: 422', payload: null, recipient: null });
  t.equal(calls.length, 1);
  t.match(lines.filter((line) => line.level === 50 && line.channel === 'SMS'), [{ reason: 'http: 422', msg: 'notification given up' }]);
  t.notMatch(JSON.stringify(lines), /ada@|4915112345|48151623|0199aaaa/);
});

t.test('a provider that never answers, or is not there, is tried again', async (t) => {
  const { url, calls } = await provider(t, 0, 200);
  const { row } = await sent(t, { SMS_URL: url }, { tryMs: 100 });
  t.match(row, { attempts: 2, failed_at: null });
  t.equal(calls.length, 2);
  const gone = await sent(t, { SMS_URL: 'http://127.0.0.1:1/' }, { backoffMs: 0.01 });
  t.match(gone.row, { attempts: 10, last_error: /^http: (ECONNREFUSED|.*bad port.*|Error|TypeError)$/ });
});

t.test('a channel without transport is given up at once, with a warning', async (t) => {
  const { needs, row, lines } = await sent(t, { SMTP_URL: 'smtp://127.0.0.1:1' });
  t.match(row, { attempts: 1, sent_at: null, last_error: 'no transport: SMS_URL is not set', payload: null, recipient: null });
  t.match(lines.filter((line) => line.level >= 40), [{ level: 40, channel: 'SMS', reason: 'no transport: SMS_URL is not set' }]);
  t.equal(await counted(needs, 'SMS', 'failed'), 1);
});
