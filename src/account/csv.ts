import { stringify } from 'csv-stringify/sync';
import type { Cell } from '../store/personal-data.js';

/** First characters that make a spreadsheet run a cell, or hide one that does. */
const RUNS = /^[=+\-@\t\r\0]/;

/** Rows as RFC 4180 text, each ended by CRLF. A cell that a spreadsheet would run begins with an apostrophe. */
export const csvText = (rows: readonly (readonly Cell[])[]): string => stringify(rows.map((row) => row.map(written)), { record_delimiter: 'windows', quoted_match: /[\r\n]/ });

function written(cell: Cell): string {
  const text = cell === null ? '' : String(cell);
  return RUNS.test(text) ? `'${text}` : text;
}
