import { Type, type TSchema } from '@sinclair/typebox';
import { OrNull, time } from '../http/fields.js';
import { SHEETS, type Sheet, type SheetField } from './user-data.js';

const member = ({ as }: SheetField): TSchema => (as === 'flag' ? Type.Boolean() : OrNull(as === 'time' ? time() : Type.String()));

const rowOf = ({ fields }: Sheet): TSchema => Type.Object(Object.fromEntries(fields.filter((field) => !field.csvOnly).map((field) => [field.name, member(field)])));

const exportedAt = time();

const AsJson = Type.Object(
  { exportedAt, ...Object.fromEntries(SHEETS.map((sheet): [string, TSchema] => [sheet.name, sheet.name === 'user' ? rowOf(sheet) : Type.Array(rowOf(sheet))])) },
  { title: 'AccountExport', description: 'format=json' },
);

const AsCsv = Type.Object(
  { exportedAt, sheets: Type.Object(Object.fromEntries(SHEETS.map(({ name, fields }) => [name, Type.String({ description: `CSV (RFC 4180) with the columns ${fields.map((field) => field.name).join(', ')}.` })]))) },
  { title: 'AccountExportSheets', description: 'format=csv: one text per sheet' },
);

/** What an export says, as the sheets have it. */
export const ExportDocument = Type.Union([AsJson, AsCsv]);
