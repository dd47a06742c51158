import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Where a run of the suite notes the secrets of its tests, and where each was looked for. */
const FOLDER = process.env['SECRETS_FOLDER'];

/** Places that are searched. */
export type Place = 'MySQL' | 'Redis' | 'log' | 'output';

/** What a run knows at its end. */
export interface Search {
  secrets: Secrets;
  /** Characters searched, by place. */
  searched: Record<Place, number>;
  /** How many stores and logs that were. */
  looks: number;
  /** Each secret that was found, as a sentence without it. */
  found: string[];
}

/** Long runs of these are taken for random: tokens, codes, ids. */
const RUN = /[A-Za-z0-9_-]{8,}/g;
/** So much of a random run is enough to know it by, so that one cut short is found too. */
const ENOUGH = 16;
/** A password of words is looked for as a whole, if it cannot be part of anything else. */
const PHRASE = 12;

/** Secrets in a form in which much text can be searched for all of them at once. */
export class Secrets {
  private readonly marks = new Map<string, string>();
  private readonly phrases = new Map<string, string>();

  /** Adds a secret; one that is too short or too plain to be known again is not taken. */
  add(secret: string, what: string): this {
    const runs = secret.match(RUN) ?? [];
    // Of a JWT the signature alone is nobody else's: header and claims may be the same in two.
    const longest = secret.startsWith('eyJ') ? runs.at(-1) : runs.sort((a, b) => b.length - a.length)[0];
    if (longest !== undefined && longest.length >= ENOUGH) note(this.marks, longest.slice(0, ENOUGH), what);
    else if (/^\d{8}$/.test(secret)) note(this.marks, secret, what);
    else if (secret.length >= PHRASE && !secret.includes('@')) note(this.phrases, secret, what);
    return this;
  }

  get size(): number {
    return this.marks.size + this.phrases.size;
  }

  /** What of them stands in a text, each kind once. */
  in(text: string): string[] {
    const found = new Set<string>();
    for (const [run] of text.matchAll(RUN)) {
      const whole = this.marks.get(run);
      if (whole !== undefined) found.add(whole);
      const start = this.marks.get(run.slice(0, ENOUGH));
      if (start !== undefined) found.add(start);
    }
    for (const [phrase, what] of this.phrases) if (text.includes(phrase)) found.add(what);
    return [...found];
  }

  entries(): [string, string][] {
    return [...this.marks, ...this.phrases];
  }
}

/** The first name that a secret got stays. */
function note(known: Map<string, string>, secret: string, what: string): void {
  if (!known.has(secret)) known.set(secret, what);
}

/** Those of this process. */
const own = new Secrets();
const searched: Record<Place, number> = { MySQL: 0, Redis: 0, log: 0, output: 0 };
const leaks: string[] = [];
let looks = 0;

if (FOLDER !== undefined) {
  process.once('exit', () => {
    mkdirSync(FOLDER, { recursive: true });
    appendFileSync(join(FOLDER, `${process.pid}.jsonl`), `${JSON.stringify({ file: basename(process.argv[1] ?? ''), secrets: own.entries(), searched, looks, leaks })}\n`);
  });
}

/** Keeps a secret that a test made, typed or read. */
export function keepSecret(secret: string, what: string): void {
  own.add(secret, what);
}

/** Keeps the passwords of a request. */
export function keepSent(body: string): void {
  for (const [, name, text] of body.matchAll(/"(password|currentPassword|newPassword)"\s*:\s*("(?:[^"\\]|\\.)*")/g)) {
    try {
      own.add(JSON.parse(text!) as string, name!);
    } catch {
      // It is no JSON: the service refuses it too.
    }
  }
}

const ISSUED = /"(accessToken|refreshToken|jti|mfaToken|token|secret)":"([^"]+)"/g;
const DELIVERED = /[#&](access_token|refresh_token|jti)=([^&]+)/g;

/** Keeps the tokens and codes of a reply. */
export function keepReceived(body: string, cookies: readonly string[], location: string | null): void {
  if (body.length < 8_192) for (const [, name, value] of body.matchAll(ISSUED)) own.add(value!, name!);
  for (const code of /"recoveryCodes":\[([^\]]*)\]/.exec(body)?.[1]?.match(/[^",]+/g) ?? []) own.add(code, 'recovery code').add(code.replaceAll('-', ''), 'recovery code');
  for (const cookie of cookies) own.add(/^[^=]+=([^;]*)/.exec(cookie)?.[1] ?? '', `cookie ${cookie.split('=')[0]!}`);
  for (const [, name, value] of (location ?? '').matchAll(DELIVERED)) own.add(decodeURIComponent(value!), name!);
}

/** Searches a text for every secret of this process. */
export function search(place: Place, text: string): void {
  looks += 1;
  searched[place] += text.length;
  for (const what of own.in(text)) if (!leaks.includes(`${place}: ${what}`)) leaks.push(`${place}: ${what}`);
}

/** What was found so far, for a test that expects it: it is forgotten then. */
export const takeLeaks = (): string[] => leaks.splice(0);

/** All that the processes of a run noted. */
export function searchOf(folder: string): Search {
  const all: Search = { secrets: new Secrets(), searched: { MySQL: 0, Redis: 0, log: 0, output: 0 }, looks: 0, found: [] };
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.jsonl'))) {
    for (const line of readFileSync(join(folder, name), 'utf8').trimEnd().split('\n')) {
      const part = JSON.parse(line) as { file: string; secrets: [string, string][]; searched: Record<Place, number>; looks: number; leaks: string[] };
      for (const [secret, what] of part.secrets) all.secrets.add(secret, what);
      for (const place of Object.keys(part.searched) as Place[]) all.searched[place] += part.searched[place];
      all.looks += part.looks;
      all.found.push(...part.leaks.map((leak) => `${leak}, by ${part.file}`));
    }
  }
  return all;
}
