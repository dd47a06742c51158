import type { Deps } from '../deps.js';
import { fileTransport } from './file.js';
import { mailTransport } from './mail.js';
import type { Channel, Values } from './templates.js';
import { webhookTransport } from './webhook.js';

/** A message as it goes out. */
export interface Outgoing {
  /** The same on every repeat, so that a receiver can tell one from a new message. */
  id: string;
  tenant: string;
  template: string;
  channel: Channel;
  to: string;
  subject: string | null;
  text: string;
  data: Values;
}

/** What came of one try. A reason names codes only: what a remote server says may quote an address. */
export type Delivery = { kind: 'sent' } | { kind: 'retry'; reason: string } | { kind: 'failed'; reason: string };

export interface Transport {
  /** Never rejects; gives up when `signal` says so. */
  deliver(message: Outgoing, signal: AbortSignal): Promise<Delivery>;
  close(): void;
  /** True when the channel has nowhere to go. */
  readonly unset?: boolean;
}

const nowhere = (setting: string): Transport => ({
  deliver: () => Promise.resolve({ kind: 'failed', reason: `no transport: ${setting} is not set` }),
  close: () => undefined,
  unset: true,
});

/** Where each channel goes: NOTIFY_FILE for all of them when it is set. */
export function createTransports(needs: Pick<Deps, 'config' | 'keyring' | 'clock'>): Record<Channel, Transport> {
  const { notifyFile, smtpUrl, smsUrl, whatsappUrl, mailFrom } = needs.config;
  if (notifyFile !== null) {
    const file = fileTransport(notifyFile, needs.clock);
    return { EMAIL: file, SMS: file, WHATSAPP: file };
  }
  return {
    EMAIL: smtpUrl === null ? nowhere('SMTP_URL') : mailTransport(smtpUrl, mailFrom),
    SMS: smsUrl === null ? nowhere('SMS_URL') : webhookTransport(smsUrl, 'SMS', needs),
    WHATSAPP: whatsappUrl === null ? nowhere('WHATSAPP_URL') : webhookTransport(whatsappUrl, 'WHATSAPP', needs),
  };
}

/** The code of a failed system or network call, of its cause if it has none of its own. */
export function codeOf(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: unknown; name?: string };
  if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return code;
  return cause === undefined ? (name ?? 'Error') : codeOf(cause);
}
