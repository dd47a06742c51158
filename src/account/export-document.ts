import { Type, type TSchema } from '@sinclair/typebox';
import { OrNull, time } from '../http/fields.js';
import { SHEETS, type Sheet, type SheetField } from './user-data.js';

/** What the texts of the sheets look like, by the name of their field. */
const EXAMPLES: Readonly<Record<string, string>> = {
  id: '0198f4a2-7c1e-7b55-9d0e-3f6f0c1d2e4a',
  email: 'ada@example.org',
  status: 'active',
  provider: 'local',
  givenName: 'Ada',
  familyName: 'Lovelace',
  name: 'member',
  description: 'May use the service',
  slug: 'example',
  device: 'Ada’s laptop',
  ipAddress: '203.0.113.7',
  method: 'totp',
  action: 'login',
};

const text = (name: string): TSchema => Type.String({ examples: [EXAMPLES[name] ?? 'text'] });

const member = ({ name, as }: SheetField): TSchema => (as === 'flag' ? Type.Boolean() : OrNull(as === 'time' ? time() : text(name)));

const rowOf = ({ fields }: Sheet): TSchema => Type.Object(Object.fromEntries(fields.filter((field) => !field.csvOnly).map((field) => [field.name, member(field)])));

const csvOf = ({ fields }: Sheet): TSchema => {
  const columns = fields.map((field) => field.name).join(',');
  return Type.String({ description: 'CSV (RFC 4180) with a header row.', examples: [`${columns}\r\n`] });
};

const exportedAt = time();

const AsJson = Type.Object(
  { exportedAt, ...Object.fromEntries(SHEETS.map((sheet): [string, TSchema] => [sheet.name, sheet.name === 'user' ? rowOf(sheet) : Type.Array(rowOf(sheet))])) },
  { title: 'AccountExport', description: 'format=json' },
);

const AsCsv = Type.Object(
  { exportedAt, sheets: Type.Object(Object.fromEntries(SHEETS.map((sheet) => [sheet.name, csvOf(sheet)]))) },
  { title: 'AccountExportSheets', description: 'format=csv: one text per sheet' },
);

/** What an export says, as the sheets have it. */
export const ExportDocument = Type.Union([AsJson, AsCsv], { description: 'The document, written at the speed of the client.' });
