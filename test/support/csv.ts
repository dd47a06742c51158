/** Reads RFC 4180 text strictly: CRLF ends each record, quotes stand only around a whole field or doubled within it. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < text.length) {
    // A bare field, or a quoted one whose quotes are doubled; then a comma or CRLF.
    const [whole, quoted, bare, end] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(text.slice(at, at + 100_000)) ?? [];
    if (whole === undefined) throw new Error(`not RFC 4180 at ${at}: ${JSON.stringify(text.slice(at, at + 40))}`);
    row.push(quoted?.replaceAll('""', '"') ?? bare!);
    if (end === '\r\n') {
      rows.push(row);
      row = [];
    }
    at += whole.length;
  }
  if (row.length > 0) throw new Error('the last record has no end');
  if (rows.some((one) => one.length !== rows[0]!.length)) throw new Error('records differ in length');
  return rows;
}
