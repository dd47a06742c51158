import { isUtf8 } from 'node:buffer';

/** One line of a file, counted from 1; `text` is null when it cannot be read, and `problem` says why. */
export type NumberedLine = { number: number; text: string; problem: null } | { number: number; text: null; problem: string };

/** Longest line, in bytes; a file that is no JSON Lines at all must not fill the memory. */
export const MOST_BYTES = 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const BOM = '\uFEFF';

/**
 * The lines of a UTF-8 text. They end with LF or CRLF alone: JSON may hold U+2028 as it is, where `readline` would
 * break the line. Bytes that are no UTF-8 are a problem of their line, never a replacement character in a name.
 */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<NumberedLine> {
  let number = 0;
  let pieces: Buffer[] = [];
  let length = 0;

  function keep(piece: Buffer): void {
    length += piece.length;
    if (length > MOST_BYTES) pieces = [];
    else if (piece.length > 0) pieces.push(piece);
  }

  function take(): NumberedLine {
    number += 1;
    const bytes = Buffer.concat(pieces);
    const isTooLong = length > MOST_BYTES;
    [pieces, length] = [[], 0];
    if (isTooLong) return { number, text: null, problem: 'longer than 1 MiB' };
    return isUtf8(bytes) ? { number, text: textOf(bytes, number), problem: null } : { number, text: null, problem: 'not valid UTF-8' };
  }

  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      keep(chunk.subarray(from, end));
      from = end + 1;
      yield take();
    }
    keep(chunk.subarray(from));
  }
  if (length > 0) yield take();
}

function textOf(bytes: Buffer, number: number): string {
  const text = (bytes.at(-1) === CR ? bytes.subarray(0, -1) : bytes).toString();
  return number === 1 && text.startsWith(BOM) ? text.slice(1) : text;
}
