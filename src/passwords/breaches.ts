import { createHash } from 'node:crypto';
import type { Config } from '../config/settings.js';
import type { Log } from '../log.js';

/** Whether a password is known from a breach; false when nobody could say in time. */
export type IsBreached = (plain: string) => Promise<boolean>;

/** A sign-up waits no longer for the answer, in ms. */
const PATIENCE_MS = 800;
/** Characters of the SHA-1 that are told. */
const TOLD = 5;

/**
 * Asks a range service in the form of api.pwnedpasswords.com: it is told five characters of the password's SHA-1 and
 * answers with every suffix it knows, padded, so that neither it nor the wire learns which password was meant.
 * A service that is down, slow or odd answers nothing, and the password passes.
 */
export function createBreachCheck({ breachRangeUrl }: Pick<Config, 'breachRangeUrl'>, log: Log): IsBreached {
  if (breachRangeUrl === null) return () => Promise.resolve(false);
  const range = breachRangeUrl.endsWith('/') ? breachRangeUrl : `${breachRangeUrl}/`;
  return async (plain) => {
    const digest = createHash('sha1').update(plain).digest('hex').toUpperCase();
    try {
      const response = await fetch(range + digest.slice(0, TOLD), {
        headers: { 'Add-Padding': 'true' },
        redirect: 'error',
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (!response.ok) throw new Error(`status ${response.status}`);
      return lists(await response.text(), digest.slice(TOLD));
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'the breach range service could not be asked: a password went unchecked');
      return false;
    }
  };
}

/** Lines are `SUFFIX:count`; padding counts 0. */
const lists = (answer: string, suffix: string): boolean => answer.toUpperCase().split(/\r?\n/).some((line) => line.startsWith(`${suffix}:`) && Number(line.slice(suffix.length + 1)) > 0);

function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string } };
  return cause?.code ?? message ?? 'unknown';
}
