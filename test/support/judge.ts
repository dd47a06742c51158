import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { createPaths } from '../../src/http/paths.js';
import type { Document, Operation, Response } from '../../src/openapi/document.js';
import type { Schema } from '../../src/openapi/schemas.js';
import { FORMATS } from './formats.js';

/** A reply and what it answers, as a client saw them. */
export interface Seen {
  method: string;
  /** Without the query. */
  path: string;
  status: number;
  header: (name: string) => string | null;
  text: string;
}

export interface Verdict {
  /** What was reached: `POST /api/auth/login 401 INVALID_CREDENTIALS`; null where no endpoint is. */
  label: string | null;
  /** What the document does not say, as a sentence. */
  fault: string | null;
}

/** Headers that mean something to a client: a reply has them only where the document says so. */
const MEANT = ['Set-Cookie', 'X-XSRF-Token', 'Location', 'Retry-After', 'WWW-Authenticate', 'ETag', 'Content-Disposition'];

/** Bodies longer than this, in characters, are left to the tests that ask for them. */
const MOST_CHECKED = 256 * 1024;

const PROBLEM = 'application/problem+json';

/** What may answer a request before anybody looks for the endpoint that it means. */
const BEFORE = ['400 INVALID_REQUEST', '413 PAYLOAD_TOO_LARGE'];

/** Holds replies against a document. Its objects are taken to be closed: a member that it does not name is a fault. */
export function createJudge(document: Document): (seen: Seen) => Verdict {
  const find = createPaths(new Map(Object.entries(document.paths).map(([path, methods]) => [path, { path, methods }])));
  const ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true, formats: FORMATS });
  ajv.addSchema(closed(document) as object, 'document');
  const checks = new Map<string, ValidateFunction>();
  const checkOf = (...pointer: string[]): ValidateFunction => {
    const ref = `document#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;
    const check = checks.get(ref) ?? ajv.compile({ $ref: ref });
    checks.set(ref, check);
    return check;
  };

  // Compiled now rather than at the first refusal, whose time may matter; what one endpoint adds to it is looked at without ajv.
  const checkProblem = checkOf('components', 'schemas', 'Problem');

  function faultOf(seen: Seen, path: string, operation: Operation): string | null {
    const declared = operation.responses[seen.status];
    if (!declared) return `${seen.status} is not declared`;
    const [pointer, response] = '$ref' in declared ? resolved(document, declared.$ref) : [['paths', path, seen.method.toLowerCase(), 'responses', String(seen.status)], declared];
    const fault = headerFault(document, seen, response);
    if (fault !== null) return fault;
    if (!response.content) return seen.text === '' ? null : 'no body is declared';
    const media = (seen.header('content-type') ?? '').split(';')[0]!;
    if (!response.content[media]) return `the media type ${media} is not declared`;
    // A test in the same process may be measuring how long its event loop is held.
    if (seen.text.length > MOST_CHECKED) return null;
    if (media === PROBLEM) return checkProblem(JSON.parse(seen.text)) ? codeFault(seen, response) : ajv.errorsText(checkProblem.errors, { dataVar: 'body' });
    const check = checkOf(...pointer, 'content', media, 'schema');
    if (check(media.endsWith('json') ? JSON.parse(seen.text) : seen.text)) return null;
    return ajv.errorsText(check.errors, { dataVar: 'body' });
  }

  return (seen) => {
    const code = codeOf(seen);
    const found = find(seen.path)?.target;
    // Methods are told by case: `get` is none.
    const operation = seen.method === seen.method.toUpperCase() ? found?.methods[seen.method.toLowerCase()] : undefined;
    const said = [seen.status, code].filter(Boolean).join(' ');
    if (!found || !operation) {
      const allowed = [found ? '405 METHOD_NOT_ALLOWED' : '404 NOT_FOUND', ...BEFORE, ...(found && seen.method === 'OPTIONS' ? ['204'] : [])];
      // A reply to HEAD has no body that could name a code.
      const isAllowed = allowed.some((one) => one === said || (seen.method === 'HEAD' && one.startsWith(said)));
      return { label: null, fault: isAllowed ? null : `${said} where no endpoint is` };
    }
    // The pipeline of tests answers so to an error that the endpoint does not declare.
    if (seen.status === 500 && seen.text.includes('is not declared')) return { label: null, fault: seen.text };
    return { label: `${seen.method} ${operation['x-same-as'] ?? found.path} ${said}`, fault: faultOf(seen, found.path, operation) };
  };
}

function codeOf({ header, text }: Seen): string {
  if (!header('content-type')?.startsWith(PROBLEM) || text === '') return '';
  return String((JSON.parse(text) as { code?: unknown }).code);
}

/** Whether a problem has the status and a code of its reply, as its schema says beside that of all problems. */
function codeFault(seen: Seen, { content }: Response): string | null {
  const { status, code } = JSON.parse(seen.text) as Record<string, unknown>;
  const own = (content![PROBLEM]!.schema['allOf'] as Schema[])[1]!.properties!;
  if (status !== own['status']!.const || status !== seen.status) return `the body has the status ${String(status)}`;
  return own['code']!.enum!.includes(code) ? null : `${String(code)} is not declared`;
}

function headerFault({ components }: Document, { header }: Seen, response: Response): string | null {
  const declared = Object.entries(response.headers).map(([name, spec]) => [name, '$ref' in spec ? components.headers[spec.$ref.split('/').at(-1)!] : spec] as [string, { required?: boolean }]);
  const missing = declared.find(([name, { required }]) => required && header(name) === null);
  if (missing) return `the header ${missing[0]} is missing`;
  const extra = MEANT.find((name) => header(name) !== null && !declared.some(([known]) => known === name));
  return extra === undefined ? null : `the header ${extra} is not declared`;
}

function resolved(document: Document, ref: string): [string[], Response] {
  const name = ref.split('/').at(-1)!;
  return [['components', 'responses', name], document.components.responses[name]!];
}

/** The same document with no room for members that it does not name. What stands in an allOf only adds to its neighbours. */
function closed(node: unknown, within = ''): unknown {
  if (Array.isArray(node)) return node.map((one) => closed(one, within));
  if (typeof node !== 'object' || node === null) return node;
  const members = Object.fromEntries(Object.entries(node).map(([name, member]) => [name, closed(member, name)]));
  const isOpen = 'properties' in node && !('additionalProperties' in node) && within !== 'allOf';
  return isOpen ? { ...members, additionalProperties: false } : members;
}

/** Everything that a document declares, by the label that reaching it gets; a second path of an endpoint adds nothing. */
export function labelsOf(document: Document): string[] {
  const labels = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      Object.entries(operation.responses).flatMap(([status, declared]) => {
        const { content } = '$ref' in declared ? resolved(document, declared.$ref)[1] : declared;
        const codes = Object.keys(content?.[PROBLEM]?.examples ?? {}).map((code) => ` ${code}`);
        const plain = !content || Object.keys(content).some((media) => media !== PROBLEM) ? [''] : [];
        return [...plain, ...codes].map((said) => `${method.toUpperCase()} ${operation['x-same-as'] ?? path} ${status}${said}`);
      }),
    ),
  );
  return [...new Set(labels)];
}
