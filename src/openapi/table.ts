import type { Document, Operation, Response } from './document.js';
import type { Schema } from './schemas.js';

const BEGIN = '<!-- endpoints: written by npm run generate -->';
const END = '<!-- /endpoints -->';

/** A text whose table of endpoints, between its two marks, is that of the document. */
export function withEndpoints(text: string, document: Document): string {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`the text has no ${BEGIN} … ${END}`);
  return `${text.slice(0, from)}${BEGIN}\n${endpointTable(document)}\n${text.slice(to)}`;
}

/** The endpoints of a document as a table in Markdown, chapter by chapter; one that answers at two paths stands there once. */
function endpointTable({ tags, paths }: Document): string {
  const endpoints = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
  const lines = ['| Endpoint | | Caller | Request | Success |', '|---|---|---|---|---|'];
  for (const { name } of tags) {
    for (const { path, method, operation } of endpoints) {
      if (operation.tags[0] !== name || operation['x-same-as'] !== undefined) continue;
      const cells = [`${method.toUpperCase()} \`${path}\``, operation.summary, callerOf(operation), requestOf(operation), successOf(operation)];
      lines.push(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
    }
  }
  return lines.join('\n');
}

const callerOf = ({ security }: Operation): string => (security.some((scheme) => 'bearer' in scheme) ? 'signed in' : 'anyone');

function requestOf({ requestBody, parameters = [] }: Operation): string {
  const body = requestBody ? [code(membersOf(requestBody.content['application/json']!.schema))] : [];
  const query = parameters.filter((parameter) => parameter.in === 'query').map(({ name, schema }) => code(`?${name}${schema.enum ? `=${schema.enum.join('|')}` : ''}`));
  return [...body, ...query].join(' ');
}

function successOf({ responses }: Operation): string {
  const good = Object.entries(responses).filter(([status]) => Number(status) < 400) as [string, Response][];
  return good.map(([status, { content }]) => [status, ...Object.entries(content ?? {}).map(([media, { schema }]) => bodyOf(media, schema))].join(' ')).join('; ');
}

function bodyOf(media: string, schema: Schema): string {
  if (media !== 'application/json') return media;
  if (schema.anyOf) return schema.anyOf.map((one) => bodyOf(media, one)).join(' or ');
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1)!;
  return code(schema.type === 'array' ? '[…]' : membersOf(schema));
}

/** {email, password, deviceName?} */
function membersOf({ properties = {}, required = [] }: Schema): string {
  return `{${Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`)).join(', ')}}`;
}

const code = (text: string): string => `\`${text}\``;
