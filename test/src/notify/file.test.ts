import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startSender } from '../../../src/notify/sender.js';
import { CODE, codeMail, counted, notifyNeeds, queue, settled } from '../../support/notify.js';

function outbox(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-outbox-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return join(folder, 'a/b/outbox.jsonl');
}

const read = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

t.test('NOTIFY_FILE takes every message of every channel as one JSON line', async (t) => {
  const path = outbox(t);
  const { needs } = await notifyNeeds(t, { NOTIFY_FILE: path, SMTP_URL: 'smtp://127.0.0.1:1' });
  const sender = startSender(needs, { timing: { pollMs: 60_000 } });
  t.teardown(() => sender.close());
  await queue(needs, codeMail());
  await queue(needs, codeMail({ channel: 'SMS', to: '+4915112345', tenant: 'acme' }));
  await queue(needs, codeMail({ channel: 'WHATSAPP', to: '+4915112345' }));
  sender.wake();
  await settled(needs);

  const lines = read(path).sort((a, b) => String(a.channel).localeCompare(String(b.channel)));
  t.same(lines.map((line) => Object.keys(line).sort()), Array(3).fill(['channel', 'data', 'subject', 'template', 'tenant', 'text', 'time', 'to']));
  t.match(lines[0], { tenant: 'global', template: 'account_deletion_requested', channel: 'EMAIL', to: 'ada@example.com', subject: 'Your code to delete your account', text: CODE, data: { otp: CODE, name: 'Ada' } });
  t.match(lines[1], { tenant: 'acme', channel: 'SMS', to: '+4915112345', subject: null, text: CODE, data: { otp: CODE } });
  t.match(lines[2], { tenant: 'global', channel: 'WHATSAPP' });
  t.ok(Math.abs(Date.parse(String(lines[0]!.time)) - Date.now()) < 60_000);
  t.equal(statSync(path).mode & 0o077, 0, 'the file is its owner’s alone');
  t.equal(await counted(needs, 'EMAIL', 'sent'), 1);
});

t.test('two nodes write whole lines, each message once', async (t) => {
  const path = outbox(t);
  const { needs, url } = await notifyNeeds(t, { NOTIFY_FILE: path });
  const { needs: other } = await notifyNeeds(t, { NOTIFY_FILE: path }, url);
  for (let i = 0; i < 60; i += 1) await queue(needs, codeMail({ to: `user${i}@example.com` }));
  const senders = [startSender(needs), startSender(other)];
  t.teardown(() => Promise.all(senders.map((sender) => sender.close())));
  await settled(needs);
  t.same(read(path).map((line) => line.to).sort(), Array.from({ length: 60 }, (_, i) => `user${i}@example.com`).sort());
});

t.test('a file that cannot be written is tried again', async (t) => {
  const { needs } = await notifyNeeds(t, { NOTIFY_FILE: '/dev/null/outbox.jsonl' });
  const sender = startSender(needs, { timing: { pollMs: 10, backoffMs: 0.01 } });
  t.teardown(() => sender.close());
  await queue(needs, codeMail());
  t.match(await settled(needs), [{ attempts: 10, last_error: 'file: EEXIST', payload: null, recipient: null }]);
  t.equal(await counted(needs, 'EMAIL', 'retried'), 9);
  t.equal(await counted(needs, 'EMAIL', 'failed'), 1);
});
