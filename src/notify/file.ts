import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../clock.js';
import { codeOf, type Transport } from './channels.js';

/**
 * Appends each message as one JSON line. The line is one write to a file opened for appending, so that the lines of
 * several nodes do not mix; the file is the owner's alone, since codes stand in it.
 */
export function fileTransport(path: string, clock: Clock): Transport {
  return {
    async deliver({ id: _id, ...message }) {
      const line = Buffer.from(`${JSON.stringify({ time: new Date(clock.now()).toISOString(), ...message })}\n`);
      try {
        await mkdir(dirname(path), { recursive: true });
        const file = await open(path, 'a', 0o600);
        try {
          const { bytesWritten } = await file.write(line);
          // The rest of a line that a full disk cut off would not belong to anything.
          return bytesWritten === line.length ? { kind: 'sent' } : { kind: 'retry', reason: 'file: cut off' };
        } finally {
          await file.close();
        }
      } catch (error) {
        return { kind: 'retry', reason: `file: ${codeOf(error)}` };
      }
    },
    close: () => undefined,
  };
}
