import { readFileSync, statSync } from 'node:fs';
import type { Reader } from './readers.js';

/** An OpenID Connect provider that people may sign in with. */
export interface OAuthProvider {
  /** Its name in paths and profiles. */
  id: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** `openid` is always among them. */
  scopes: string[];
  /** How the client proves itself at the token endpoint; null: as the provider's metadata say. */
  clientAuth: 'basic' | 'post' | null;
}

export interface OAuthProviders {
  list: OAuthProvider[];
  /** Whether any user of the machine may read the file, which holds secrets. */
  isExposed: boolean;
}

const MEMBERS = ['id', 'issuer', 'clientId', 'clientSecret', 'scopes', 'clientAuth'];
const DEFAULT_SCOPES = ['openid', 'email', 'profile'];
/** Profiles of these names come from this service itself. */
const RESERVED = ['local', 'password'];

/** Reads the providers' file; what is wrong with it is said with the entry's number, never with its values. */
export const oauthProviders: Reader<OAuthProviders> = (path) => {
  const entries = parse(readText(path));
  const problems = entries.flatMap((entry, i) => problemsOf(entry).map((problem) => `entry ${i + 1}: ${problem}`));
  if (problems.length > 0) throw new Error(`a file of usable providers: ${problems.join('; ')}`);
  const list = (entries as Raw[]).map(providerOf);
  const ids = list.map(({ id }) => id);
  const twice = ids.find((id, i) => ids.indexOf(id) !== i);
  if (twice !== undefined) throw new Error(`a file of usable providers: the id ${twice} stands twice`);
  return { list, isExposed: (statSync(path).mode & 0o004) !== 0 };
};

interface Raw {
  id: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  scopes?: string | string[];
  clientAuth?: 'basic' | 'post';
}

const providerOf = ({ id, issuer, clientId, clientSecret, scopes, clientAuth }: Raw): OAuthProvider => ({
  ...{ id, issuer, clientId, clientSecret },
  scopes: [...new Set(['openid', ...wordsOf(scopes ?? DEFAULT_SCOPES)])],
  clientAuth: clientAuth ?? null,
});

const wordsOf = (scopes: string | string[]): string[] => (typeof scopes === 'string' ? scopes.split(' ').filter((word) => word !== '') : scopes);

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`a file that can be read: ${(error as Error).message}`, { cause: error });
  }
}

function parse(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own words quote the text, and so a secret.
    throw new Error('a file with valid JSON');
  }
  if (!Array.isArray(value)) throw new Error('a file with a JSON array [{"id", "issuer", "clientId", "clientSecret", "scopes"}]');
  return value;
}

function problemsOf(entry: unknown): string[] {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return ['must be an object'];
  const raw = entry as Record<string, unknown>;
  const checks: [boolean, string][] = [
    [isMatch(raw['id'], /^[A-Za-z0-9_-]{1,64}$/) && !RESERVED.includes(raw['id'] as string), `id must be 1 to 64 letters, digits, - and _, and neither ${RESERVED.join(' nor ')}`],
    [isIssuer(raw['issuer']), 'issuer must be an https URL without query and fragment (http on localhost alone)'],
    [isMatch(raw['clientId'], /^[\x20-\x7e]{1,512}$/), 'clientId must be a text'],
    [isMatch(raw['clientSecret'], /^[\x20-\x7e]{1,4096}$/), 'clientSecret must be a text'],
    [raw['scopes'] === undefined || areScopes(raw['scopes']), 'scopes must be a list of words, or one text of them'],
    [raw['clientAuth'] === undefined || isMatch(raw['clientAuth'], /^(basic|post)$/), 'clientAuth must be basic or post'],
  ];
  const unknown = Object.keys(raw).filter((name) => !MEMBERS.includes(name));
  return [...checks.filter(([isFine]) => !isFine).map(([, problem]) => problem), ...unknown.map((name) => `${name} is not a known member`)];
}

const isMatch = (value: unknown, pattern: RegExp): boolean => typeof value === 'string' && pattern.test(value);

const areScopes = (value: unknown): boolean => (Array.isArray(value) ? value.every((word) => isMatch(word, /^[\x21\x23-\x5b\x5d-\x7e]+$/)) : isMatch(value, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/));

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

function isIssuer(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > 255 || !URL.canParse(value)) return false;
  const { protocol, hostname, search, hash, username, password } = new URL(value);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && LOOPBACK.includes(hostname));
  return isSafe && /^[\x21-\x7e]+$/.test(value) && search === '' && hash === '' && username === '' && password === '';
}
