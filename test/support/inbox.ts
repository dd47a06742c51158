import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.js';
import { keepSecret } from './secrets.js';
import type { Teardown } from './stores.js';

/** A message as NOTIFY_FILE has it. */
export interface Message {
  tenant: string;
  template: string;
  channel: string;
  to: string;
  subject: string | null;
  text: string;
  data: Record<string, string>;
}

export interface Inbox {
  /** Settings that have messages delivered here. */
  settings: { NOTIFY_FILE: string };
  /** Every message to an address or number so far. */
  to: (recipient: string) => Message[];
  /** The nth message of a template to a recipient, once it has arrived. */
  nth: (recipient: string, template: string, n?: number) => Promise<Message>;
}

/** A file that services under test deliver their messages to. */
export function openInbox(t: Teardown): Inbox {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-inbox-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'outbox.jsonl');
  const to = (recipient: string): Message[] => {
    // The last line may be half written; the next look sees it whole.
    const lines = read(file).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Message).filter((message) => message.to === recipient).map(kept);
  };
  return {
    settings: { NOTIFY_FILE: file },
    to,
    async nth(recipient, template, n = 1) {
      for (const started = performance.now(); performance.now() - started < PATIENCE_MS; ) {
        const message = to(recipient).filter((one) => one.template === template)[n - 1];
        if (message) return message;
        await sleep(5);
      }
      throw new Error(`message ${n} of ${template} did not arrive`);
    },
  };
}

function kept(message: Message): Message {
  for (const name of ['otp', 'token'] as const) if (message.data[name] !== undefined) keepSecret(message.data[name], `${name} of a message`);
  return message;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
