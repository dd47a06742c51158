import { isPassword } from './length.js';

/** Whether a password is among the commonest, in whatever case. */
export type IsCommon = (plain: string) => boolean;

/**
 * Loads the packaged list (some 18,000 passwords that are long enough to be chosen; 3 MiB).
 * Imported here, not above, so that commands which never ask do not pay for it.
 */
export async function loadCommonest(): Promise<IsCommon> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  const commonest = new Set(dictionary['passwords-common'].filter(isPassword));
  return (plain) => commonest.has(plain.toLowerCase());
}
