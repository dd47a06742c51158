import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import type { Teardown } from './stores.js';

/** A mail as the server got it. */
export interface Received {
  from: string;
  /** Recipients of the envelope. */
  to: string[];
  /** Header lines, unfolded, as they came. */
  headers: string[];
  text: string;
}

export interface MailServer {
  url: string;
  mails: Received[];
  /** Resolves when so many mails have come. */
  received(count: number): Promise<Received[]>;
}

/** What the server answers instead of taking a mail; null takes it. */
export type Answer = { code: number; text: string } | null;

/** A real mail server; `answer` is asked after each RCPT TO, `taken` before each mail is accepted. */
export async function startMailServer(t: Teardown, hooks: { answer?: (to: string) => Answer | Promise<Answer>; taken?: () => Promise<void> } = {}): Promise<MailServer> {
  const mails: Received[] = [];
  let waiting: (() => void)[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onRcptTo({ address }, _session, callback) {
      void Promise.resolve(hooks.answer?.(address) ?? null).then((answer) => callback(answer === null ? null : Object.assign(new Error(answer.text), { responseCode: answer.code })));
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        void (hooks.taken?.() ?? Promise.resolve()).then(() => {
          const { mailFrom, rcptTo } = session.envelope;
          mails.push({ from: mailFrom === false ? '' : mailFrom.address, to: rcptTo.map((one) => one.address), ...parse(Buffer.concat(chunks)) });
          callback(null);
          for (const look of waiting) look();
        });
      });
    },
  });
  // A client that gives up in the middle is no fault of the test.
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    received: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (mails.length < count) return;
          waiting = waiting.filter((one) => one !== look);
          resolve(mails);
        };
        waiting.push(look);
        look();
      }),
  };
}

function parse(raw: Buffer): Pick<Received, 'headers' | 'text'> {
  const whole = raw.toString('latin1');
  const end = whole.indexOf('\r\n\r\n');
  const headers = whole.slice(0, end).replace(/\r\n[ \t]+/g, ' ').split('\r\n');
  const body = whole.slice(end + 4);
  const encoded = headers.some((line) => /^content-transfer-encoding: quoted-printable$/i.test(line));
  const text = Buffer.from(encoded ? unquote(body) : body, 'latin1').toString();
  return { headers, text: text.replace(/\r\n/g, '\n') };
}

/** Quoted-printable (RFC 2045), as bytes. */
const unquote = (text: string): string => text.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
