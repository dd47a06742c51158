import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDocument, type Document } from '../../src/openapi/document.js';
import { OPS_ROUTES } from '../../src/ops/routes.js';
import { PUBLIC_ROUTES } from '../../src/routes.js';
import { createJudge, labelsOf, type Seen } from './judge.js';
import { keepReceived, keepSent } from './secrets.js';

/** Where a run of the whole suite notes what its tests reach. */
const FOLDER = process.env['REPLIES_FOLDER'];

/** What is published, and the same of the ops listener, which is not. */
const documents = (): Document[] => [createDocument(PUBLIC_ROUTES), createDocument(OPS_ROUTES)];

/** Sees every reply that a test gets from the service, and fails the test at one that the document does not know. */
function createWitness(): (seen: Seen) => void {
  const [judgePublic, judgeOps] = documents().map(createJudge) as [ReturnType<typeof createJudge>, ReturnType<typeof createJudge>];
  const noted = new Set<string>();
  const note = (line: string): void => {
    if (FOLDER === undefined || noted.has(line)) return;
    noted.add(line);
    mkdirSync(FOLDER, { recursive: true });
    appendFileSync(join(FOLDER, `${process.pid}.txt`), `${line}\n`);
  };
  return (seen) => {
    const there = judgePublic(seen);
    // The listener is not known here. What one does not know the other may.
    const { label, fault } = there.fault === null && there.label !== null ? there : better(there, judgeOps(seen));
    if (label !== null) note(label);
    if (fault === null) return;
    const sentence = `${seen.method} ${seen.path}: ${fault}`;
    note(`! ${sentence}`);
    throw new Error(`a reply that the document does not declare: ${sentence}\n${seen.status} ${seen.text.slice(0, 500)}`);
  };
}

type Verdict = ReturnType<ReturnType<typeof createJudge>>;

const better = (one: Verdict, other: Verdict): Verdict => (other.fault === null && (other.label !== null || one.fault !== null) ? other : one);

/** @throws Error at a reply that the document does not declare */
export const witnessed = createWitness();

/** Fetches from the service, or from somebody else: that is not witnessed. Redirects are not followed. */
export async function fetched(url: string, init: RequestInit = {}): Promise<{ response: Response; text: string }> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  const text = await response.text();
  if (typeof init.body === 'string') keepSent(init.body);
  keepReceived(text, response.headers.getSetCookie(), response.headers.get('location'));
  // The path as it was sent: fetch resolves dots.
  if (response.headers.has('x-request-id')) witnessed({ method: init.method ?? 'GET', path: new URL(response.url).pathname, status: response.status, header: (name) => response.headers.get(name), text });
  return { response, text };
}

/** What the tests of a run declared to be met, what they met, and what they met that is not declared. */
export function testimony(folder: string): { declared: string[]; reached: Set<string>; faults: string[] } {
  const lines = readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n'));
  return {
    declared: [...new Set(documents().flatMap(labelsOf))],
    reached: new Set(lines.filter((line) => !line.startsWith('! '))),
    faults: [...new Set(lines.filter((line) => line.startsWith('! ')))],
  };
}
