import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { startSender } from '../../../src/notify/sender.js';
import { loadTemplates } from '../../../src/notify/templates.js';
import { figure } from '../../support/figures.js';
import { startMailServer, type Answer } from '../../support/mail.js';
import { CODE, codeMail, counted, notifyNeeds, queue, rows, settled } from '../../support/notify.js';

t.test('a queued mail arrives at once, and its code, values and address leave the database', async (t) => {
  const server = await startMailServer(t);
  const { needs, lines } = await notifyNeeds(t, { SMTP_URL: server.url, MAIL_FROM: 'Portcullis <no-reply@id.example>' });
  const sender = startSender(needs, { timing: { pollMs: 60_000 } });
  t.teardown(() => sender.close());
  await sleep(100);
  await queue(needs, codeMail());
  const queuedAt = performance.now();
  sender.wake();
  const [mail] = await server.received(1);
  t.ok(performance.now() - queuedAt < 20_000, 'long before the next look');

  t.match(mail, { from: 'no-reply@id.example', to: ['ada@example.com'], text: /^Hello Ada,\n\n[^]+\n\n {4}48151623\n/ });
  const header = (name: string): string[] => mail!.headers.filter((line) => line.toLowerCase().startsWith(`${name}:`));
  t.same(header('to'), ['To: ada@example.com']);
  t.same(header('from'), ['From: Portcullis <no-reply@id.example>']);
  t.same(header('subject'), ['Subject: Your code to delete your account']);
  t.same(header('auto-submitted'), ['Auto-Submitted: auto-generated']);

  const [row] = await settled(needs);
  t.match(row, { payload: null, recipient: null, next_attempt_at: null, claimed_until: null, failed_at: null, attempts: 1 });
  t.same(header('message-id'), [`Message-ID: <${row!.id}@id.example>`], 'the same on every try');
  t.notMatch(JSON.stringify(lines), /ada@|48151623|Ada\b|0199aaaa/, 'the log holds no address, code, name or user id');
  t.equal(await counted(needs, 'EMAIL', 'sent'), 1);
});

t.test('a mail that is refused for now is tried again and arrives once', async (t) => {
  const answers: Answer[] = [{ code: 451, text: 'greylisted, ada@example.com' }, { code: 452, text: 'too busy' }];
  const server = await startMailServer(t, { answer: () => answers.shift() ?? null });
  const { needs } = await notifyNeeds(t, { SMTP_URL: server.url });
  await queue(needs, codeMail());
  const sender = startSender(needs, { timing: { pollMs: 10, backoffMs: 10 } });
  t.teardown(() => sender.close());
  const [row] = await settled(needs);
  t.match(row, { attempts: 3, failed_at: null, last_error: null });
  t.equal(server.mails.length, 1);
  t.equal(await counted(needs, 'EMAIL', 'retried'), 2);
});

t.test('each wait is about four times as long as the one before', async (t) => {
  const { needs } = await notifyNeeds(t, { SMTP_URL: 'smtp://127.0.0.1:1' });
  await queue(needs, codeMail());
  const sender = startSender(needs, { timing: { pollMs: 5, backoffMs: 1_000_000 } });
  t.teardown(() => sender.close());
  const waitAfter = async (attempt: number): Promise<number> => {
    for (;;) {
      const [row] = await rows(needs);
      if (row!.attempts === attempt && row!.claimed_until === null) {
        t.equal(row!.last_error, 'smtp: ESOCKET CONN');
        return row!.next_attempt_at!.getTime() - needs.clock.now();
      }
      await sleep(5);
    }
  };
  for (const [attempt, expected] of [[1, 1_000_000], [2, 4_000_000], [3, 16_000_000]] as const) {
    const wait = await waitAfter(attempt);
    t.ok(wait > expected * 0.7 && wait < expected * 1.3, `${attempt}: ${wait}`);
    await needs.mysql.run('UPDATE notification_outbox SET next_attempt_at = UTC_TIMESTAMP(3)');
  }
});

t.test('a mail that is refused for good is not tried again', async (t) => {
  const server = await startMailServer(t, { answer: (to) => ({ code: 550, text: `5.1.1 <${to}> user unknown` }) });
  const { needs, lines } = await notifyNeeds(t, { SMTP_URL: server.url });
  await queue(needs, codeMail());
  const sender = startSender(needs, { timing: { pollMs: 10, backoffMs: 1 } });
  t.teardown(() => sender.close());
  const [row] = await settled(needs);
  t.match(row, { attempts: 1, sent_at: null, last_error: 'smtp: 550 EENVELOPE RCPT TO', payload: null, recipient: null });
  t.match(lines.filter((line) => line.level === 50), [{ msg: 'notification given up', reason: 'smtp: 550 EENVELOPE RCPT TO' }]);
  t.notMatch(JSON.stringify(lines), /ada@/);
});

t.test('a code that has expired is not sent', async (t) => {
  const server = await startMailServer(t);
  const { needs } = await notifyNeeds(t, { SMTP_URL: server.url });
  await queue(needs, codeMail({ data: { otp: CODE, expiresAt: new Date(Date.now() - 1000).toISOString(), gracePeriodDays: 30 } }));
  const sender = startSender(needs);
  t.teardown(() => sender.close());
  t.match(await settled(needs), [{ sent_at: null, last_error: 'expired', payload: null, recipient: null }]);
  t.same(server.mails, []);
});

t.test('what a user wrote neither adds a recipient nor a header, and arrives as it is', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-templates-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'global'));
  writeFileSync(join(folder, 'global/account_restored.EMAIL.eta'), "Subject: For <%= it.name ?? 'you' %>\n\nHello <%= it.name ?? 'you' %>!\n");
  const server = await startMailServer(t);
  const { needs } = await notifyNeeds(t, { SMTP_URL: server.url });
  const names = ['{{7*7}}', '<%= 1 %>', '${7*7}', '<script>alert(1)</script>', '%0aBcc: eve@example.com', 'x\r\nBcc: eve@example.com', 'x\nBcc: eve@example.com\n\nbody', '\u200fx\u202ey', 'Zoë 😀', '.', '=?utf-8?q?x?='];
  for (const name of names) await queue(needs, { userId: null, tenant: null, template: 'account_restored', channel: 'EMAIL', to: 'ada@example.com', data: { name } });
  const sender = startSender(needs, { templates: loadTemplates(folder) });
  t.teardown(() => sender.close());
  await settled(needs);

  t.equal(server.mails.length, names.length);
  for (const mail of server.mails) {
    t.same(mail.to, ['ada@example.com']);
    t.same(mail.headers.filter((line) => /^(to|cc|bcc):/i.test(line)), ['To: ada@example.com']);
    t.equal(mail.headers.filter((line) => /^subject:/i.test(line)).length, 1);
  }
  const texts = server.mails.map((mail) => mail.text.trim()).sort();
  const expected = names.map((name) => `Hello ${name.replace(/[\r\n]+/g, ' ')}${name.includes('\u202e') ? '\u202c' : ''}!`).sort();
  t.same(texts, expected);
  const extra = server.mails.filter((mail) => mail.to.length !== 1 || mail.headers.filter((line) => /^(to|cc|bcc|subject):/i.test(line)).length !== 2).length;
  const literal = texts.filter((text, i) => text === expected[i]).length;
  figure(t, 'T56', { did: `${names.length} names with template code, markup and line breaks, by real mail`, figure: `${literal} as written, ${extra} mails with a recipient or header more`, ok: literal === names.length && extra === 0 });
});

t.test('a recipient that is not exactly one address gets nothing', async (t) => {
  const server = await startMailServer(t);
  const { needs } = await notifyNeeds(t, { SMTP_URL: server.url });
  const recipients = ['ada@example.com, eve@example.com', 'ada@example.com;eve@example.com', 'Eve <eve@example.com>', 'ada@example.com\r\nBcc: eve@example.com', 'a b@example.com', 'ada@eve@example.com', 'ada', '', 'g: eve@example.com;', '"x" <eve@example.com>', 'ada@example.com\u0000'];
  for (const to of recipients) await queue(needs, codeMail({ to }));
  const sender = startSender(needs);
  t.teardown(() => sender.close());
  const done = await settled(needs);
  t.same(done.map((row) => row.last_error), recipients.map(() => 'smtp: the recipient is not one address'));
  t.same(server.mails, []);
});

t.test('two nodes send each message once', async (t) => {
  const server = await startMailServer(t);
  const { needs, url } = await notifyNeeds(t, { SMTP_URL: server.url });
  const { needs: other } = await notifyNeeds(t, { SMTP_URL: server.url }, url);
  for (let i = 0; i < 60; i += 1) await queue(needs, codeMail({ to: `user${i}@example.com` }));
  const senders = [startSender(needs), startSender(other)];
  t.teardown(() => Promise.all(senders.map((sender) => sender.close())));
  t.ok((await settled(needs)).every((row) => row.attempts === 1));
  t.same(server.mails.map((mail) => mail.to[0]).sort(), Array.from({ length: 60 }, (_, i) => `user${i}@example.com`).sort());
});

t.test('what a killed node held is sent by another when the lease is over', async (t) => {
  let hold = true;
  let asked = (): void => undefined;
  const reached = new Promise<void>((resolve) => (asked = resolve));
  const server = await startMailServer(t, {
    async answer() {
      asked();
      while (hold) await sleep(10);
      return null;
    },
  });
  const { needs, url } = await notifyNeeds(t, { SMTP_URL: server.url });
  await queue(needs, codeMail());
  const node = fork(new URL('../../support/sender-node.js', import.meta.url), [url, server.url, '1000'], { stdio: 'ignore' });
  await reached;
  const ended = once(node, 'exit');
  node.kill('SIGKILL');
  await ended;
  t.match(await rows(needs), [{ attempts: 1, sent_at: null }]);

  hold = false;
  const sender = startSender(needs, { timing: { pollMs: 20 } });
  t.teardown(() => sender.close());
  t.match(await settled(needs), [{ attempts: 2, payload: null, recipient: null }]);
  t.equal(server.mails.length, 1);
});

t.test('a result is kept while MySQL is away: the mail is not sent twice', async (t) => {
  const { needs: direct, url } = await notifyNeeds(t);
  const wire = await startWire(t, Number(new URL(url).port));
  const server = await startMailServer(t, {
    taken() {
      wire.cut();
      setTimeout(() => wire.mend(), 700);
      return Promise.resolve();
    },
  });
  const detour = new URL(url);
  detour.port = String(wire.port);
  const { needs } = await notifyNeeds(t, { SMTP_URL: server.url }, detour.href);
  await queue(direct, codeMail());
  const sender = startSender(needs, { timing: { pollMs: 20 } });
  t.teardown(() => sender.close());
  t.match(await settled(direct), [{ attempts: 1, failed_at: null }]);
  t.equal(server.mails.length, 1);
});

/** A way to MySQL that can be cut: what is open breaks, what comes is refused. */
async function startWire(t: Test, target: number): Promise<{ port: number; cut(): void; mend(): void }> {
  const open = new Set<Socket>();
  let whole = true;
  const listener = createServer((near) => {
    if (!whole) return near.destroy();
    const far = connect(target, '127.0.0.1');
    for (const [one, other] of [[near, far], [far, near]] as const) {
      open.add(one);
      one.pipe(other);
      one.on('error', () => undefined).on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void listener.close());
  return {
    port: (listener.address() as AddressInfo).port,
    cut() {
      whole = false;
      for (const socket of open) socket.destroy();
    },
    mend: () => void (whole = true),
  };
}

t.test('a channel that hangs holds up no other', async (t) => {
  const server = await startMailServer(t, { answer: () => new Promise<never>(() => undefined) });
  const { needs } = await notifyNeeds(t, { SMTP_URL: server.url });
  for (let i = 0; i < 40; i += 1) await queue(needs, codeMail());
  const sms = (): Promise<void> => queue(needs, codeMail({ channel: 'SMS', to: '+4915112345' }));
  await sms();
  const sender = startSender(needs, { timing: { pollMs: 20, closeMs: 50 } });
  const smsDone = async (): Promise<number> => (await needs.mysql.rows("SELECT id FROM notification_outbox WHERE channel = 'SMS' AND failed_at IS NOT NULL")).length;
  const mailsTried = async (): Promise<number> => (await needs.mysql.rows("SELECT id FROM notification_outbox WHERE channel = 'EMAIL' AND attempts > 0")).length;
  while ((await smsDone()) < 1 || (await mailsTried()) < 16) await sleep(10);
  // All the while the mails hang, others go out and no more mails are begun.
  for (let more = 2; more <= 5; more += 1) {
    await sms();
    sender.wake();
    while ((await smsDone()) < more) await sleep(10);
    await sleep(100);
  }
  t.equal(await mailsTried(), 16, '16 mails on their way at most');

  const closing = performance.now();
  await sender.close();
  t.ok(performance.now() - closing < 10_000, 'close does not wait for the 15 s that a try may take');
  const left = (await rows(needs)).filter((row) => row.payload !== null);
  t.equal(left.length, 40, 'what was not sent stays queued');
  t.ok(left.every((row) => row.claimed_until === null), 'and belongs to nobody');
});

t.test('a message sealed under a lost key is given up', async (t) => {
  const server = await startMailServer(t);
  const { needs, url } = await notifyNeeds(t);
  const { needs: rekeyed } = await notifyNeeds(t, { SMTP_URL: server.url, SECRET_KEY: Buffer.alloc(32, 9).toString('base64') }, url);
  await queue(needs, codeMail());
  const sender = startSender(rekeyed);
  t.teardown(() => sender.close());
  t.match(await settled(needs), [{ last_error: 'sealed under an unknown SECRET_KEY' }]);
});
