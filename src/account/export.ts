import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { answer } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { record, whence } from '../store/audit.js';
import type { Mysql } from '../store/mysql.js';
import { pagesOf, type Cell } from '../store/personal-data.js';
import { csvText } from './csv.js';
import { ExportDocument } from './export-document.js';
import { SHEETS, type Sheet } from './user-data.js';

type Needs = Pick<Deps, 'mysql' | 'keyring' | 'clock' | 'log'>;

/** GET …/account/export: what the service holds about the caller, page by page at the speed of the client. */
export const exportAccount = userEndpoint({
  tag: 'Account',
  summary: 'Everything that is held about the caller, as a file',
  query: Type.Object({ format: Type.Optional(Type.Union([Type.Literal('json'), Type.Literal('csv')])) }),
  replies: {
    200: {
      body: ExportDocument,
      description: ExportDocument.description!,
      headers: { 'Content-Disposition': 'A file name to save it by.' },
    },
  },
  errors: [],
  handle: async ({ mysql, keyring, clock, log }: Needs, call) => {
    const { userId } = call.principal;
    const format = call.query.format ?? 'json';
    const user = await readUser(mysql, userId);
    // Before the first byte: what is sent cannot be taken back.
    await record(mysql, { userId, subject: subjectOf(keyring, userId), action: 'account.exported', status: 'success', ...whence(call), detail: { format } });
    const exportedAt = new Date(clock.now()).toISOString();
    const document = format === 'json' ? jsonDocument(mysql, userId, user, exportedAt) : csvDocument(mysql, userId, user, exportedAt);
    return answer(200, {
      headers: {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Disposition': `attachment; filename="account-export${format === 'csv' ? '-csv' : ''}.json"`,
      },
      stream: told(document, (error) => log.warn({ requestId: call.requestId, err: error }, 'an export was broken off')),
    });
  },
});

const USER = SHEETS.find((sheet) => sheet.name === 'user')!;
const LISTS = SHEETS.filter((sheet) => sheet !== USER);

async function readUser(mysql: Mysql, userId: string): Promise<Cell[]> {
  for await (const [row] of pagesOf(mysql, USER, userId)) if (row) return row;
  // The account went between the two reads.
  throw new ApiError('UNAUTHENTICATED');
}

/** The JSON document, in pieces of a page of rows. */
async function* jsonDocument(mysql: Mysql, userId: string, user: Cell[], exportedAt: string): AsyncGenerator<string> {
  let text = `{"exportedAt":${JSON.stringify(exportedAt)},"user":${jsonRow(USER, user)}`;
  for (const sheet of LISTS) {
    text += `,${JSON.stringify(sheet.name)}:[`;
    let separator = '';
    for await (const page of pagesOf(mysql, sheet, userId)) {
      yield `${text}${separator}${page.map((row) => jsonRow(sheet, row)).join(',')}`;
      text = '';
      separator = ',';
    }
    text += ']';
  }
  yield `${text}}`;
}

const jsonRow = ({ fields }: Sheet, row: Cell[]): string => JSON.stringify(Object.fromEntries(fields.flatMap((field, index) => (field.csvOnly ? [] : [[field.name, row[index]!]]))));

/** The document of CSV texts, in pieces of a page of rows. Each text is one JSON string, so its pieces are escaped one by one. */
async function* csvDocument(mysql: Mysql, userId: string, user: Cell[], exportedAt: string): AsyncGenerator<string> {
  let text = `{"exportedAt":${JSON.stringify(exportedAt)},"sheets":{"user":"${sheetPart([headerOf(USER), user])}"`;
  for (const sheet of LISTS) {
    text += `,${JSON.stringify(sheet.name)}:"${sheetPart([headerOf(sheet)])}`;
    for await (const page of pagesOf(mysql, sheet, userId)) {
      yield text + sheetPart(page);
      text = '';
    }
    text += '"';
  }
  yield `${text}}}`;
}

const headerOf = ({ fields }: Sheet): string[] => fields.map((field) => field.name);

const sheetPart = (rows: Cell[][]): string => JSON.stringify(csvText(rows)).slice(1, -1);

/** Passes a stream on and tells when it fails: nobody else hears of it once the status is sent. */
async function* told(pieces: AsyncGenerator<string>, failed: (error: unknown) => void): AsyncGenerator<string> {
  try {
    yield* pieces;
  } catch (error) {
    failed(error);
    throw error;
  }
}
