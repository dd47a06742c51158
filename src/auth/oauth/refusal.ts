import { ApiError, type ErrorExtras } from '../../errors.js';

/** What a redirect flow that opened no session tells its client, as `error` in the fragment. */
export const REFUSALS = [
  'access_denied',
  'provider_unavailable',
  'provider_error',
  'email_unverified',
  'account_exists_unverified',
  'account_linked_otherwise',
  'account_deleted',
  'account_inactive',
  'account_locked',
  'login_throttled',
  'unavailable',
  'internal',
] as const;

export type RefusalCode = (typeof REFUSALS)[number];

/** What goes with the word: seconds to wait, and until when a deleted account can be restored. */
export type RefusalExtras = Pick<ErrorExtras, 'retryAfter' | 'permanentDeletionAt'>;

/** Ends a redirect flow with a word for the client. */
export class Refused extends Error {
  constructor(
    readonly code: RefusalCode,
    readonly extras: RefusalExtras = {},
    options?: ErrorOptions,
  ) {
    super(code, options);
    this.name = 'Refused';
  }
}

/** The refusal that an error of the login path amounts to; what has no word of its own is internal. */
export function refusalOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  if (!(error instanceof ApiError)) return new Refused('internal', {}, { cause: error });
  const code = REFUSALS.find((word) => word === error.code.toLowerCase()) ?? 'internal';
  return new Refused(code, error.extras, { cause: error });
}

/** Why, in words for the log: the names of errors, which hold neither codes nor people. */
export function reasonOf({ cause }: Refused): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  const { error } = cause as { error?: unknown };
  const { code } = (cause.cause ?? {}) as { code?: unknown };
  return [cause.message, ...[error, code].filter((word) => typeof word === 'string' && /^\w{1,64}$/.test(word))].join(': ');
}
