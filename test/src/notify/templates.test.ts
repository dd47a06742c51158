import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { loadConfig } from '../../../src/config/load.js';
import { CHANNELS, checkTemplates, loadTemplates, standIns, TEMPLATES, type Templates } from '../../../src/notify/templates.js';
import type { LogLine } from '../../support/notify.js';

const NOW = Date.UTC(2025, 10, 20, 12, 0, 0);
const CODE = '48151623';
const VALUES = {
  ...{ otp: CODE, expiresAt: '2025-11-20T12:15:00.000Z', gracePeriodDays: 30, restorableUntil: '2025-12-20T12:00:00.000Z', token: 'Zm9vYmFyYmF6', link: '' },
  ...{ at: '2025-11-20T12:00:00.000Z', ipAddress: '2001:0db8:0000:0000:0000:0000:0000:0001', lockedUntil: '2025-11-20T12:15:00.000Z', guessed: 'password', recoveryCodes: 10, provider: 'google' },
};
const SHIPPED = new URL('../../../../templates/', import.meta.url).pathname;

/** A folder of templates; `files` maps paths to texts. */
function folder(t: Test, files: Record<string, string>): string {
  const path = mkdtempSync(join(tmpdir(), 'portcullis-templates-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, '..'), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

function check(templates: Templates, env: Record<string, string> = {}): LogLine[] {
  const lines: LogLine[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) });
  const config = loadConfig({ MYSQL_URL: 'mysql://x@x/x', REDIS_URL: 'redis://x', SECRET_KEY: Buffer.alloc(32).toString('base64'), SMTP_URL: 'smtp://localhost', ...env });
  checkTemplates({ config, log }, templates);
  return lines;
}

t.test('every message exists on each of its channels, with a subject on EMAIL alone', (t) => {
  const templates = loadTemplates();
  t.same(templates.problems, []);
  for (const [name, spec] of Object.entries(TEMPLATES)) {
    for (const channel of 'only' in spec ? [spec.only] : CHANNELS) {
      const rendered = templates.render(['global'], name, channel, VALUES, NOW);
      t.ok(rendered && rendered.text.length > 20, `${name} on ${channel}`);
      t.equal(typeof rendered?.subject, channel === 'EMAIL' ? 'string' : 'object');
      if (channel === 'SMS') t.ok(/^[\x20-\x7e]{1,160}$/.test(rendered!.text), `${name} fits one SMS`);
    }
  }
  t.end();
});

t.test('a code comes with how long it is valid, a deletion with how long it can be undone', (t) => {
  const templates = loadTemplates();
  const text = (name: string, channel: 'EMAIL' | 'SMS' | 'WHATSAPP', now = NOW): string => templates.render(['global'], name, channel, VALUES, now)!.text;
  for (const name of ['account_deletion_requested', 'account_restore_requested']) {
    for (const channel of CHANNELS) {
      t.match(text(name, channel), CODE);
      t.match(text(name, channel), /\b15 min/);
    }
  }
  t.match(text('account_deletion_requested', 'EMAIL'), 'until 20 November 2025 at 12:15 UTC');
  t.match(text('account_deletion_requested', 'EMAIL'), '30 days');
  t.match(text('account_deletion_requested', 'WHATSAPP', NOW + 14.5 * 60_000), 'valid for 1 minute.', 'what is left counts, not what there was');
  for (const channel of CHANNELS) t.match(text('account_deleted', channel), '20 December 2025 at 12:00 UTC');
  t.end();
});

t.test('a mail has the link where there is one, else the bare token', (t) => {
  const templates = loadTemplates();
  const link = 'https://app.example.com/reset-password#token=Zm9vYmFyYmF6';
  for (const name of ['email_verification_requested', 'password_reset_requested']) {
    const text = (values: object): string => templates.render(['global'], name, 'EMAIL', { ...VALUES, ...values }, NOW)!.text;
    t.match(text({}), /^ {4}Zm9vYmFyYmF6$/m);
    t.ok(text({ link }).split('\n').includes(`    ${link}`));
    t.notMatch(text({ link }), /^ {4}Zm9v/m);
  }
  t.end();
});

const HOSTILE = ['{{7*7}}', '<%= 1 %>', '<%~ it.otp %>', '<% throw 1 %>', '${it.otp}', '`${7*7}`', '<script>alert(1)</script>', '%0aBcc: eve@example.com', '\u202egnp.exe', "'); throw 1; ('", '\\'];

t.test('what a user wrote stands in the text as it is', (t) => {
  const templates = loadTemplates(folder(t, { 'x/m.SMS.eta': 'Hi <%= it.name %>!', 'x/m.EMAIL.eta': 'Subject: For <%= it.name %>\n\nHi <%~ it.name %>!' }));
  for (const name of HOSTILE) {
    const closed = name.startsWith('\u202e') ? `${name}\u202c` : name;
    t.equal(templates.render(['x'], 'm', 'SMS', { name }, NOW)!.text, `Hi ${closed}!`, name);
    t.same(templates.render(['x'], 'm', 'EMAIL', { name }, NOW), { subject: `For ${closed}`, text: `Hi ${closed}!` });
  }
  t.end();
});

t.test('a value is one line without control characters and of bounded length', (t) => {
  const templates = loadTemplates(folder(t, { 'x/m.EMAIL.eta': 'Subject: For <%= it.name %>\n\nHi <%= it.name %>!' }));
  const rendered = (name: string) => templates.render(['x'], 'm', 'EMAIL', { name }, NOW)!;
  t.same(rendered('a\r\nBcc: eve@example.com\r\n\r\nBuy'), { subject: 'For a Bcc: eve@example.com Buy', text: 'Hi a Bcc: eve@example.com Buy!' });
  t.equal(rendered('a\u0000\u001b[31m\u2028b\u0085c').text, 'Hi a [31m b c!');
  t.ok(rendered('x'.repeat(100_000)).text.length < 250);
  t.equal(rendered('😀'.repeat(300)).text, `Hi ${'😀'.repeat(200)}!`, 'cut between characters');
  t.end();
});

t.test('a value that turns the direction of writing does not turn what follows', (t) => {
  const templates = loadTemplates(folder(t, { 'x/m.SMS.eta': '<%= it.name %>!' }));
  t.equal(templates.render(['x'], 'm', 'SMS', { name: '\u202e\u2067a\u2069\u202d' }, NOW)!.text, '\u202e\u2067a\u2069\u202d\u2069\u202c\u202c!');
  t.equal(templates.render(['x'], 'm', 'SMS', { name: 'שלום\u200f' }, NOW)!.text, 'שלום\u200f!', 'a plain right-to-left name stays as it is');
  t.end();
});

t.test('a tenant without a template gets the one of the fallback tenant, then the one of the project', (t) => {
  const templates = loadTemplates(folder(t, { 'acme/m.SMS.eta': 'acme', 'house/m.SMS.eta': 'house', 'house/n.SMS.eta': 'house', 'global/n.SMS.eta': 'global', 'global/o.SMS.eta': 'global' }));
  const text = (tenant: string | null, name: string): string | undefined => templates.render(standIns(tenant, 'house'), name, 'SMS', {}, NOW)?.text;
  t.equal(text('acme', 'm'), 'acme');
  t.equal(text('acme', 'n'), 'house');
  t.equal(text('acme', 'o'), 'global');
  t.equal(text('nobody', 'm'), 'house');
  t.equal(text(null, 'm'), 'house');
  t.equal(text('acme', 'p'), undefined);
  t.end();
});

t.test('a tenant cannot name a file outside the folder', (t) => {
  const outer = folder(t, { 'x/m.SMS.eta': 'outside', 'templates/global/m.SMS.eta': 'inside' });
  const templates = loadTemplates(join(outer, 'templates'));
  for (const tenant of ['../x', '..', '../../x', '/etc', join(outer, 'x'), 'global/../../x', '..%2fx', 'x\u0000', '__proto__', '']) {
    t.equal(templates.render(standIns(tenant, tenant), 'm', 'SMS', {}, NOW)?.text, 'inside', JSON.stringify(tenant));
  }
  t.end();
});

t.test('missing critical templates on EMAIL are an error at start, with their names', (t) => {
  t.same(check(loadTemplates()), []);
  const path = folder(t, {});
  cpSync(SHIPPED, path, { recursive: true });
  rmSync(join(path, 'global/account_deleted.EMAIL.eta'));
  rmSync(join(path, 'global/account_deleted.SMS.eta'));
  t.match(check(loadTemplates(path)), [{ level: 50, tenant: 'global', channel: 'EMAIL', missing: ['account_deleted'], msg: 'critical templates are missing' }]);
  t.match(check(loadTemplates(), { DEFAULT_COMMS_TENANT_ID: 'acme' }), [{ level: 50, tenant: 'acme', missing: Object.keys(TEMPLATES) }]);
  const nowhere = check(loadTemplates(join(path, 'none')));
  t.match(nowhere, [{ level: 50, problems: [/ENOENT/] }, { level: 50, missing: Object.keys(TEMPLATES) }]);
  t.end();
});

t.test('a file that is no usable template is an error at start', (t) => {
  const path = folder(t, {
    'global/account_restored.EMAIL.eta': 'no subject',
    'global/account_deleted.EMAIL.eta': 'Subject: x\n\n<% if ( %>',
    'global/account_restore_requested.EMAIL.eta': 'Subject: x\n\n<%= it.optt %>',
    'global/strange.FAX.eta': 'x',
    'global/..2025/account_deleted.EMAIL.eta': 'a hidden folder is no tenant',
    'global/README.md': 'not a template',
  });
  const [problems, missing] = check(loadTemplates(path));
  t.equal((problems!.problems as string[]).length, 4);
  t.match((problems!.problems as string[]).sort(), [/^global\/account_deleted/, /^global\/account_restore_requested.*not given/, /^global\/account_restored.*Subject/, /^global\/strange.FAX/]);
  t.match(missing, { missing: Object.keys(TEMPLATES) });
  t.end();
});

t.test('a start without any way for mail is an error', (t) => {
  t.match(check(loadTemplates(), { SMTP_URL: '' }), [{ level: 50, msg: /neither SMTP_URL nor NOTIFY_FILE/ }]);
  t.same(check(loadTemplates(), { SMTP_URL: '', NOTIFY_FILE: '/tmp/x' }), []);
  t.end();
});
