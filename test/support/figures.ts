import { appendFileSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Test } from 'tap';
import { ROWS, type RowId } from '../faults/rows.js';

/** Where `npm run test:faults` gathers the figures of its run. */
const FOLDER = process.env['FIGURES_FOLDER'];

/** What was done about a row of test/faults/rows.ts, and what came of it. */
export interface Figure {
  did: string;
  figure: string;
  /** Whether the figure is within the bound of the row. */
  ok: boolean;
}

/** The size of an experiment: small in `npm test`, large in `npm run test:faults`. */
export const scaled = (quick: number, full: number): number => (process.env['FAULTS'] === 'full' ? full : quick);

/** Asserts the figure of a row, and notes it for the table of the run. */
export function figure(t: Test, id: RowId, { did, figure, ok }: Figure): void {
  if (FOLDER !== undefined) {
    mkdirSync(FOLDER, { recursive: true });
    const file = basename(process.argv[1] ?? '').replace(/\.test\.m?js$/, '');
    appendFileSync(join(FOLDER, `${process.pid}.jsonl`), `${JSON.stringify({ id, did, figure, ok, file })}\n`);
  }
  t.ok(ok, `${id}: ${did}: ${figure}; ${ROWS[id].bound}`);
}
