/** Every error a client can meet: code → status and title. Text and status live here and nowhere else. */
export const ERRORS = {
  INVALID_REQUEST: { status: 400, title: 'The request is malformed or fails validation.' },
  PASSWORD_TOO_WEAK: { status: 400, title: 'The password is too easy to guess.' },
  TOKEN_INVALID: { status: 400, title: 'The token is unknown, used, replaced by a newer one or expired.' },
  OTP_INVALID: { status: 400, title: 'The code is wrong, expired or was never issued.' },
  OAUTH_STATE_INVALID: { status: 400, title: 'The sign-in that the provider answers is unknown, used or expired.' },
  UNAUTHENTICATED: { status: 401, title: 'No valid access credential was sent.' },
  INVALID_CREDENTIALS: { status: 401, title: 'E-mail address or password is wrong.' },
  MFA_INVALID: { status: 401, title: 'The second factor is wrong.' },
  MFA_TOKEN_INVALID: { status: 401, title: 'The login to confirm is unknown, used or expired.' },
  REFRESH_SESSION_NOT_FOUND: { status: 401, title: 'The session does not exist.' },
  REFRESH_TOKEN_INVALID: { status: 401, title: 'The refresh token is not valid.' },
  REFRESH_SESSION_REVOKED: { status: 401, title: 'The session was revoked.' },
  REFRESH_SESSION_DELETED: { status: 401, title: 'The session was deleted.' },
  REFRESH_SESSION_EXPIRED: { status: 401, title: 'The session has expired.' },
  REFRESH_USER_NOT_FOUND: { status: 401, title: 'The account does not exist.' },
  REFRESH_USER_INACTIVE: { status: 401, title: 'The account is not active.' },
  CSRF_FAILED: { status: 403, title: 'The request does not prove that it comes from the client of this session.' },
  ACCOUNT_DELETED: { status: 403, title: 'The account was deleted; permanentDeletionAt says until when it can be restored.' },
  ACCOUNT_INACTIVE: { status: 403, title: 'The account is disabled.' },
  NOT_FOUND: { status: 404, title: 'There is nothing at this path.' },
  OAUTH_PROVIDER_UNKNOWN: { status: 404, title: 'Nobody can sign in with a provider of this name.' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'This path does not answer that method.' },
  MFA_ALREADY_ENROLLED: { status: 409, title: 'An authenticator app is set up already; it must be removed first.' },
  MFA_NOT_ENROLLED: { status: 409, title: 'No second factor is set up, or none waits to be confirmed.' },
  DELETION_BLOCKED: { status: 409, title: 'Another service objects to the deletion.' },
  RESTORE_EXPIRED: { status: 410, title: 'The grace period of the deleted account is over.' },
  PAYLOAD_TOO_LARGE: { status: 413, title: 'The request body is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'The request body must be application/json in UTF-8.' },
  OTP_LOCKED: { status: 429, title: 'Too many wrong codes were tried.' },
  LOGIN_THROTTLED: { status: 429, title: 'Another attempt for this account is still being delayed.' },
  ACCOUNT_LOCKED: { status: 429, title: 'Too many failed logins: the account is locked for a while.' },
  RATE_LIMITED: { status: 429, title: 'Too many requests.' },
  INTERNAL: { status: 500, title: 'Something went wrong on our side.' },
  OAUTH_PROVIDER_UNAVAILABLE: { status: 502, title: 'The provider to sign in with did not answer as it should.' },
  DELETION_CHECK_UNAVAILABLE: { status: 503, title: 'A service that must agree to the deletion did not answer.' },
  OVERLOADED: { status: 503, title: 'The service has more logins to check than it can take.' },
  UNAVAILABLE: { status: 503, title: 'A part of the service is down.' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** What a problem document may carry beside its code. `retryAfter` is in seconds. */
export interface ErrorExtras {
  detail?: string;
  retryAfter?: number;
  errors?: { path: string; message: string }[];
  reasons?: { source: string; reason: string }[];
  permanentDeletionAt?: string;
}

/** An error that a client may see, named by its code (RFC 9457 fields come from the catalogue). Without a stack trace: what went wrong inside is its cause. */
export class ApiError extends Error {
  static {
    this.prototype.name = 'ApiError';
  }

  constructor(
    readonly code: ErrorCode,
    readonly extras: ErrorExtras = {},
    options?: ErrorOptions,
    /** Set-Cookie values that go with the reply. */
    readonly cookies: string[] = [],
  ) {
    // A refusal is an answer, and a trace would cost more than all else that a refusal takes.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(code, options);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Milliseconds as the whole seconds of `Retry-After`, at least 1. */
export const retrySeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));
