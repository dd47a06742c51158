import type { Config } from '../config/settings.js';
import { ApiError } from '../errors.js';
import type { Log } from '../log.js';
import { createBreachCheck } from './breaches.js';
import { loadCommonest } from './commonest.js';

/** What a password must not be, beside too short or too long. */
export interface PasswordRules {
  /**
   * Refuses what an attacker would try first. Takes equally long whosever the address is.
   * @param path where the password stands in the body
   * @throws ApiError PASSWORD_TOO_WEAK
   */
  demand(plain: string, email: string, path: string): Promise<void>;
}

export async function loadPasswordRules(config: Pick<Config, 'breachRangeUrl'>, log: Log): Promise<PasswordRules> {
  const isCommon = await loadCommonest();
  const isBreached = createBreachCheck(config, log);
  return {
    async demand(plain, email, path) {
      const refuse = (message: string): ApiError => new ApiError('PASSWORD_TOO_WEAK', { errors: [{ path, message }] });
      if (isCommon(plain)) throw refuse('is among the commonest passwords');
      if (isOwnAddress(plain, email)) throw refuse('is the address of the account');
      if (await isBreached(plain)) throw refuse('is known from a data breach');
    },
  };
}

/** The address, or what stands in front of its @. */
function isOwnAddress(plain: string, email: string): boolean {
  const [password, address] = [plain.toLowerCase(), email.toLowerCase()];
  return password === address || password === address.slice(0, address.lastIndexOf('@'));
}
