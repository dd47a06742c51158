import { closeSync, openSync, readSync } from 'node:fs';
import { pause } from '../support/attempts.js';
import type { Message } from '../support/inbox.js';

/** Reads what nodes append to NOTIFY_FILE as it grows, and keeps the newest code or token of each address. */
export interface Mailbox {
  /** The secret of a message to an address that is newer than the last one asked for; null when none comes in time. */
  newest: (to: string, template: string, mostMs?: number) => Promise<string | null>;
  close: () => void;
}

/** @param file must exist */
export function openMailbox(file: string): Mailbox {
  const fd = openSync(file, 'r');
  const secrets = new Map<string, string>();
  const chunk = Buffer.alloc(64 * 1024);
  let rest = '';
  const timer = setInterval(() => {
    for (let n = readSync(fd, chunk); n > 0; n = readSync(fd, chunk)) {
      const lines = (rest + chunk.toString('utf8', 0, n)).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const { to, template, data } = JSON.parse(line) as Message;
        const secret = data['otp'] ?? data['token'];
        if (secret !== undefined) secrets.set(`${to} ${template}`, secret);
      }
    }
  }, 20);
  return {
    async newest(to, template, mostMs = 5000) {
      const key = `${to} ${template}`;
      for (const end = performance.now() + mostMs; performance.now() < end; await pause(20)) {
        const secret = secrets.get(key);
        if (secret === undefined) continue;
        secrets.delete(key);
        return secret;
      }
      return null;
    },
    close: () => {
      clearInterval(timer);
      closeSync(fd);
    },
  };
}
