/**
 * The table of `npm run test:faults`: what was done to the service in a run, row by row
 * of test/faults/rows.ts, and what came of it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {{id: string, did: string, figure: string, ok: boolean, file: string}} Figure */
/** @typedef {{threat: string, must: string, bound: string, lacks?: string, unmeasured?: string}} Row */
/** @typedef {'pass' | 'explained' | 'FAIL' | 'not measured'} Outcome */

/** How a test file tells that it has figures. */
const CARRIES = /from '[^']*\/figures\.js'/;
const [OPEN, CLOSE] = ['<!-- figures: written by npm run test:faults -->', '<!-- /figures -->'];

/** @param {string} file a compiled test */
export const carriesFigures = (file) => CARRIES.test(readFileSync(file, 'utf8'));

/** @param {string} folder @returns {Figure[]} what the tests of a run noted there */
export function readFigures(folder) {
  return readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line)));
}

/**
 * @param {Record<string, Row>} rows
 * @param {Figure[]} figures
 * @returns {{id: string, row: Row, outcome: Outcome, figures: Figure[], note: string}[]}
 */
export function judge(rows, figures) {
  return Object.entries(rows).map(([id, row]) => {
    const own = figures.filter((one) => one.id === id).sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0));
    if (own.length === 0) return { id, row, figures: own, outcome: row.unmeasured ? 'not measured' : 'FAIL', note: row.unmeasured ?? 'its tests gave no figure' };
    if (own.some((one) => !one.ok)) return { id, row, figures: own, outcome: 'FAIL', note: '' };
    return { id, row, figures: own, outcome: row.lacks ? 'explained' : 'pass', note: row.lacks ?? '' };
  });
}

/** @param {ReturnType<typeof judge>} judged */
export function countOutcomes(judged) {
  const count = (/** @type {Outcome} */ outcome) => judged.filter((one) => one.outcome === outcome).length;
  return `${judged.length} rows: ${count('pass')} pass, ${count('explained')} explained, ${count('FAIL')} fail, ${count('not measured')} not measured`;
}

/** Lines for a terminal. @param {ReturnType<typeof judge>} judged */
export function linesOf(judged) {
  return judged.flatMap(({ id, row, outcome, figures, note }) => [
    `${id}  ${outcome.padEnd(12)}  ${row.threat}`,
    ...figures.map((one) => `       ${one.ok ? ' ' : '✖'} ${one.did}: ${one.figure}`),
    `         bound: ${row.bound}`,
    ...(note ? [`         ${outcome === 'explained' ? 'not shown: ' : ''}${note}`] : []),
  ]);
}

/** @param {ReturnType<typeof judge>} judged @param {string} where when and on what, in one line */
function markdownOf(judged, where) {
  const cell = (/** @type {string} */ text) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
  const cells = (/** @type {string[]} */ parts) => `| ${parts.join(' | ')} |`;
  return [
    where,
    '',
    `${countOutcomes(judged)}.`,
    '',
    cells(['', 'Threat or fault', 'What was done', 'Figure', 'Bound', '']),
    cells(['---', '---', '---', '---', '---', '---']),
    ...judged.map(({ id, row, outcome, figures, note }) =>
      cells([
        id,
        cell(row.threat),
        figures.map((one) => `${cell(one.did)} (${one.file})`).join('<br>'),
        figures.map((one) => cell(one.figure)).join('<br>'),
        cell(row.bound),
        [outcome === 'pass' ? outcome : `**${outcome}**`, cell(note)].filter(Boolean).join(': '),
      ]),
    ),
  ].join('\n');
}

/**
 * Puts the table between its marks.
 * @param {string} file
 * @param {ReturnType<typeof judge>} judged
 * @param {string} where
 */
export function publish(file, judged, where) {
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(OPEN), text.indexOf(CLOSE)];
  if (from < 0 || to < from) throw new Error(`${file} lacks its marks`);
  writeFileSync(file, `${text.slice(0, from + OPEN.length)}\n${markdownOf(judged, where)}\n${text.slice(to)}`);
}
