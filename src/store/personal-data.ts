import type { Mysql, Queryable, Tx, Value } from './mysql.js';

/** How rows about a person are erased: they go, or columns of them are set to SQL expressions. */
export type Erasure = { how: 'delete'; only?: string } | { how: 'blank'; set: Record<string, string>; keeps: Record<string, string> };

/** Rows that one statement touches at most, so that none is long. */
export const MOST_ROWS = 500;

/** Erases up to MOST_ROWS rows that match `where`, and gives how many. A row that was blanked must not match any more. */
export async function eraseSome(on: Queryable, table: string, erasure: Erasure, where: string, values: Value[] = []): Promise<number> {
  const { affected } = await on.run(`${statement(table, erasure)} WHERE ${where} LIMIT ${MOST_ROWS}`, values);
  return affected;
}

/** Erases every row of a table that belongs to an account. */
export async function eraseAll(tx: Tx, table: string, owner: string, erasure: Erasure, userId: string): Promise<void> {
  const only = erasure.how === 'delete' && erasure.only !== undefined ? ` AND ${erasure.only}` : '';
  while ((await eraseSome(tx, table, erasure, `${owner} = ?${only}`, [userId])) === MOST_ROWS);
}

function statement(table: string, erasure: Erasure): string {
  if (erasure.how === 'delete') return `DELETE FROM ${table}`;
  const set = Object.entries(erasure.set).map(([column, value]) => `${column} = ${value}`);
  return `UPDATE ${table} SET ${set.join(', ')}`;
}

/** A column as the export shows it; `t` is the table, `flag` says whether the column is set. */
export interface Field {
  name: string;
  column: string;
  as: 'text' | 'time' | 'flag';
}

/** The rows of one kind that belong to an account, in the order of `key`, which is unique within the account. */
export interface Rows {
  from: string;
  owner: string;
  key: string;
  fields: readonly Field[];
}

export type Cell = string | boolean | null;

/** Rows of one page of an export; the next page begins behind its last. */
export const PAGE_ROWS = 250;

/** Reads an account's rows page by page, each a short statement: no connection is held between them. */
export async function* pagesOf(mysql: Mysql, { from, owner, key, fields }: Rows, userId: string): AsyncGenerator<Cell[][]> {
  const columns = fields.map((field) => (field.as === 'flag' ? `${field.column} IS NOT NULL` : field.column));
  // A list of two, one of them nobody's, has the servers go straight to the page in the index: for a single owner MariaDB
  // reads all of its entries from the first on, and MySQL those of everybody.
  const select = `SELECT ${[key, ...columns].map((column, index) => `${column} AS c${index}`).join(', ')} FROM ${from} WHERE ${owner} IN ('', ?)`;
  const order = `ORDER BY ${owner}, ${key} LIMIT ${PAGE_ROWS}`;
  for (let after: Value = null; ; ) {
    const page: Record<string, Value>[] = await (after === null ? mysql.rows(`${select} ${order}`, [userId]) : mysql.rows(`${select} AND ${key} > ? ${order}`, [userId, after]));
    if (page.length > 0) yield page.map((row) => fields.map((field, index) => cell(field, row[`c${index + 1}`]!)));
    if (page.length < PAGE_ROWS) return;
    after = page.at(-1)!['c0']!;
  }
}

function cell(field: Field, value: Value): Cell {
  if (field.as === 'flag') return Boolean(value);
  return value instanceof Date ? value.toISOString() : value === null ? null : String(value);
}
