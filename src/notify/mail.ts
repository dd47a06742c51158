import { createTransport } from 'nodemailer';
import { codeOf, type Delivery, type Transport } from './channels.js';

/** How long a mail server may take to accept a connection, to greet, and to answer a command, in ms. */
const CONNECT_MS = 5_000;
const GREETING_MS = 5_000;
const SILENCE_MS = 10_000;
const CONNECTIONS = 4;

/** One address and nothing else: no list, no name, no comment, nothing that could end a header. */
const ADDRESS = /^[^\s\p{C}@<>()[\],;:"\\]+@[^\s\p{C}@<>()[\],;:"\\]+$/u;

/** Sends mails over SMTP; connections are kept. */
export function mailTransport(url: string, from: string): Transport {
  const mailer = createTransport({
    pool: true,
    url,
    maxConnections: CONNECTIONS,
    // A server may have closed an idle connection: once more on a new one, then it is our own backoff's turn.
    maxRequeues: 1,
    connectionTimeout: CONNECT_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
    maxRecipients: 1,
  });
  const host = /@([\w.-]+)>?\s*$/.exec(from)?.[1] ?? 'localhost';
  return {
    async deliver(message, signal) {
      if (!ADDRESS.test(message.to)) return { kind: 'failed', reason: 'smtp: the recipient is not one address' };
      try {
        await mailer.sendMail({
          from,
          to: { name: '', address: message.to },
          envelope: { from, to: [message.to] },
          messageId: `<${message.id}@${host}>`,
          // Asks robots not to answer (RFC 3834).
          headers: { 'Auto-Submitted': 'auto-generated' },
          subject: message.subject ?? '',
          text: message.text,
          // Keeps the lines of the template as they are; the default breaks long ones.
          textEncoding: 'quoted-printable',
          signal,
        });
        return { kind: 'sent' };
      } catch (error) {
        return refused(error);
      }
    },
    close: () => mailer.close({ force: true }),
  };
}

/** A 5xx to the recipient or the text is about this message; any other refusal (login, sender) about our settings. */
function refused(error: unknown): Delivery {
  const { responseCode, command } = error as { responseCode?: number; command?: string };
  const step = typeof command === 'string' && /^[A-Z ]{1,16}$/.test(command) ? command : '';
  const reason = `smtp: ${responseCode ?? ''} ${codeOf(error)} ${step}`.replace(/\s+/g, ' ').trim();
  return { kind: (responseCode ?? 0) >= 500 && (step === 'RCPT TO' || step === 'DATA') ? 'failed' : 'retry', reason };
}
