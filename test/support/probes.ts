import type { Document, Operation } from '../../src/openapi/document.js';
import { exampleOf } from '../../src/openapi/schemas.js';
import type { Account } from './accounts.js';
import type { TestApp } from './app.js';
import type { Answer, Client } from './client.js';
import { exchange, request, type RawReply } from './raw.js';

/** An endpoint as the document names it. */
export interface Probe {
  method: string;
  path: string;
  operation: Operation;
  /** Codes that it declares. */
  codes: Set<string>;
}

export function probesOf(document: Document): Probe[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation, codes: new Set(codesOf(document, operation)) })),
  );
}

function codesOf({ components }: Document, { responses }: Operation): string[] {
  const full = Object.values(responses).map((declared) => ('$ref' in declared ? components.responses[declared.$ref.split('/').at(-1)!]! : declared));
  return full.flatMap(({ content }) => Object.keys(content?.['application/problem+json']?.examples ?? {}));
}

export const isForUsers = ({ operation }: Probe): boolean => operation.security.some((scheme) => 'bearer' in scheme);

/** The path with examples in the place of its parameters, or with `value`. */
export function target({ path, operation }: Probe, value?: string): string {
  const examples = (where: string) => (operation.parameters ?? []).filter((parameter) => parameter.in === where);
  const filled = examples('path').reduce((text, { name, schema }) => text.replace(`{${name}}`, value ?? encodeURIComponent(exampleOf(schema) as string)), path);
  const query = examples('query').map(({ name, schema }) => `${name}=${encodeURIComponent(exampleOf(schema) as string)}`);
  return query.length > 0 ? `${filled}?${query.join('&')}` : filled;
}

/** What the document gives as the example of a request, with what is true of the caller in it. */
export function bodyOf({ operation }: Probe, truth: Record<string, unknown>): Record<string, unknown> | undefined {
  const example = operation.requestBody?.content['application/json']?.example as Record<string, unknown> | undefined;
  return example && Object.fromEntries(Object.entries(example).map(([name, value]) => [name, truth[name] ?? value]));
}

/** Somebody who is signed in both ways. */
export interface Caller extends Account {
  client: Client;
  bearer: Record<string, string>;
  refreshToken: string;
  /** Of a browser: cookies, without the header that proves that it is one. */
  cookies: Record<string, string>;
}

export async function signIn(service: TestApp): Promise<Caller> {
  const account = await service.account();
  const [client, browser] = [service.client({ ip: someIp() }), service.client({ ip: someIp() })];
  const { accessToken, refreshToken } = (await client.login(account.email, account.password)).body as Record<string, string>;
  await browser.login(account.email, account.password, 'cookie');
  return { ...account, client, bearer: { authorization: `Bearer ${accessToken!}` }, refreshToken: refreshToken!, cookies: { cookie: browser.cookieHeader() } };
}

const someIp = (): string => `198.18.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`;

/** Sends the example of a request, as the caller where it is for users. */
export function sendExample(probe: Probe, caller: Caller, client = caller.client): Promise<Answer> {
  const { email, password, refreshToken } = caller;
  const body = bodyOf(probe, { email, password, currentPassword: password, refreshToken, jti: undefined });
  return client.request(probe.method, target(probe), { headers: isForUsers(probe) ? caller.bearer : {}, ...(body ? { body } : {}) });
}

/** Sends a request as text. */
export const sendRaw = (port: number, probe: Probe, headers: Record<string, string> | [string, string][], body?: string, path = target(probe)): Promise<RawReply> =>
  exchange(port, request(`${probe.method} ${path}`, (Array.isArray(headers) ? headers : Object.entries(headers)).map(([name, value]) => `${name}: ${value}`), body));
