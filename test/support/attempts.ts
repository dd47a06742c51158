import { identityOf } from '../../src/auth/identity.js';
import type { Deps } from '../../src/deps.js';
import { KEYS } from '../../src/store/redis.js';
import type { Answer, Client } from './client.js';

export const WRONG = 'a wrong guess';

export const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** `OK`, or the code of the problem document. */
export const codeOf = ({ status, body }: Answer): string => (status < 300 ? 'OK' : String(body['code']));

/** How many answers have which code. */
export function tally(answers: Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const code of answers.map(codeOf)) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** The codes of those that were dealt with: a machine that is busy turns some away, when a store is not heard of in time. */
export function served(answers: Answer[]): Record<string, number> {
  const { UNAVAILABLE: _turnedAway, ...counts } = tally(answers);
  return counts;
}

export async function timed(work: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const started = performance.now();
  const answer = await work;
  return { answer, ms: performance.now() - started };
}

/** Clients at addresses that no other client has. */
export function strangers(client: (options: { ip: string }) => Client): () => Client {
  let hosts = 0;
  return () => {
    hosts += 1;
    return client({ ip: `198.18.${hosts >> 8}.${hosts & 255}` });
  };
}

/** Fails until the account is locked, by the default threshold. */
export async function lockOut(from: Client, email: string): Promise<void> {
  for (let i = 0; i < 5; i += 1) await from.login(email, WRONG);
}

/** Waits until so many failures at an address are counted, which is before their replies are held. */
export async function counted({ redis, keyring }: Pick<Deps, 'redis' | 'keyring'>, email: string, failures: number): Promise<void> {
  while (Number(await redis.hget(KEYS.gate(identityOf(keyring, email), null), 'failures')) < failures) await pause(5);
}
