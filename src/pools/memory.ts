import { readFileSync } from 'node:fs';

/** What a thread of Node reserves of addresses, in bytes, with a margin: most of it is never used. */
const THREAD_ADDRESSES = 2 ** 30;
/** What a thread must leave to everybody else on the machine, in bytes. */
const SPARED = 32 * 2 ** 20;
const PAGE = 4096;

/**
 * Why no thread can be added now; null when one can. To try without the addresses would end the process, since V8 does
 * not return from that. `bytes` is the memory that the thread will use; null when it is wanted at any price.
 */
export function whyNoThread(bytes: number | null): string | null {
  if (addressesLeft() < THREAD_ADDRESSES) return 'the limit of the address space of the process (ulimit -v) leaves no room for a thread';
  if (bytes !== null && process.availableMemory() < bytes + SPARED) return 'the machine lacks the memory for another thread';
  return null;
}

function addressesLeft(): number {
  try {
    const limit = /^Max address space\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    // Nobody sets one, as a rule, and systems without /proc have none that could be read.
    return limit === undefined ? Infinity : Number(limit) - Number(readFileSync('/proc/self/statm', 'latin1').split(' ')[0]) * PAGE;
  } catch {
    return Infinity;
  }
}
