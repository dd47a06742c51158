import { availableParallelism } from 'node:os';
import { oauthProviders } from './oauth-providers.js';
import * as read from './readers.js';

/** One setting: variable, reader, default text (null: it must be given) and the sentence that documents it. */
export interface Setting<T> {
  env: string;
  read: read.Reader<T>;
  fallback: string | null;
  /** What the documents show when the default depends on the machine. */
  shown?: string;
  doc: string;
}

const setting = <T>(env: string, reader: read.Reader<T>, fallback: string | null, doc: string, shown?: string): Setting<T> => ({
  env,
  read: reader,
  fallback,
  doc,
  ...(shown === undefined ? {} : { shown }),
});

const privateRanges = '127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,fc00::/7,fe80::/10';

/** Every setting of the service, grouped as the documents show them. */
export const SETTINGS = {
  Listening: {
    host: setting('HOST', read.string, '127.0.0.1', 'Address of the public listener.'),
    port: setting('PORT', read.int(0, 65535), '8080', 'Port of the public listener; 0 takes a free one.'),
    opsHost: setting('OPS_HOST', read.string, '127.0.0.1', 'Address of the ops listener (metrics, health, pool state); keep it private.'),
    opsPort: setting('OPS_PORT', read.int(0, 65535), '9090', 'Port of the ops listener; 0 takes a free one.'),
    tlsCertFile: setting('TLS_CERT_FILE', read.optional(read.string), '', 'PEM certificate chain; with TLS_KEY_FILE the service speaks TLS itself.'),
    tlsKeyFile: setting('TLS_KEY_FILE', read.optional(read.string), '', 'PEM private key that belongs to TLS_CERT_FILE.'),
    trustTlsProxy: setting('TRUST_TLS_PROXY', read.flag, '0', 'Set to 1 when a proxy in front speaks TLS: replies carry HSTS.'),
    trustedProxies: setting('TRUSTED_PROXIES', read.cidrs, privateRanges, 'Proxies whose X-Forwarded-For or Forwarded header is believed.'),
    publicUrl: setting('PUBLIC_URL', read.optional(read.baseUrl), '', 'URL at which clients reach the service, such as https://id.example.com; without it the host that a request names is taken.'),
    corsOrigins: setting('CORS_ORIGINS', read.origins, '', 'Exact origins that browsers may call from, comma-separated.'),
    cookieDomainXsrf: setting('COOKIE_DOMAIN_XSRF', read.optional(read.domain), '', 'Domain attribute of the XSRF-TOKEN cookie, for scripts on a sibling host.'),
  },
  Stores: {
    mysqlUrl: setting('MYSQL_URL', read.mysqlUrl, null, 'MySQL or MariaDB, mysql://user:password@host:port/database.'),
    mysqlConnections: setting('MYSQL_CONNECTIONS', read.int(1, 500), '16', 'Connections that one node keeps to MySQL.'),
    redisUrl: setting('REDIS_URL', read.redisUrl, null, 'Redis or Valkey: redis://host:port, or redis+cluster://host:port,host:port with some nodes of a cluster; rediss:// and rediss+cluster:// for TLS.'),
  },
  'Keys and tokens': {
    secretKey: setting('SECRET_KEY', read.secret, null, 'At least 32 random bytes in base64; every HMAC and encryption key is derived from it.'),
    secretKeyPrevious: setting('SECRET_KEY_PREVIOUS', read.optional(read.secret), '', 'The former SECRET_KEY while it is being replaced: still accepted, never used for new values.'),
    jwtAlg: setting('JWT_ALG', read.oneOf('ES256', 'EdDSA', 'RS256'), 'ES256', 'Signature algorithm of access tokens: ES256, EdDSA or RS256. A change shows a new key first and uses it an hour later.'),
    jwtRotateDays: setting('JWT_ROTATE_DAYS', read.real(0, 3650), '30', 'Days after which the next signing key takes over; 0: only `keys rotate` lets it.'),
    jwtIssuer: setting('JWT_ISSUER', read.string, 'portcullis', 'The iss claim of access tokens.'),
    jwtAudience: setting('JWT_AUDIENCE', read.string, 'portcullis', 'The aud claim of access tokens.'),
    accessTtlS: setting('ACCESS_TTL_S', read.int(5, 86400), '900', 'Lifetime of an access token, in seconds.'),
    sessionIdleDays: setting('SESSION_IDLE_DAYS', read.real(0.00001, 3650), '14', 'A session ends after so many days without a refresh.'),
    sessionAbsoluteDays: setting('SESSION_ABSOLUTE_DAYS', read.real(0.00001, 3650), '30', 'A session ends after so many days in any case.'),
    refreshGraceMs: setting('REFRESH_GRACE_MS', read.int(0, 60000), '0', 'A predecessor that arrives up to so many milliseconds late still gets the same successor.'),
  },
  'Password hashing': {
    hashThreads: setting('HASH_THREADS', read.int(1, 256), String(Math.min(256, availableParallelism())), 'Threads of the hashing pool.', 'number of cores'),
    envFile: setting('ENV_FILE', read.optional(read.string), '', 'The file of NAME=value lines that the environment came from, if any: at SIGHUP the service takes HASH_THREADS from it.'),
    hashQueueMs: setting('HASH_QUEUE_MS', read.int(1, 60000), '1000', 'Longest time a login may wait for a hashing thread before 503 OVERLOADED.'),
    argon2Engine: setting('ARGON2_ENGINE', read.oneOf('auto', 'node-rs', 'reference'), 'auto', 'Engine of argon2id: node-rs (SIMD), reference (the argon2 package), or auto: node-rs where its binary loads.'),
    argon2MemoryKib: setting('ARGON2_MEMORY_KIB', read.int(8, 262144), '19456', 'Memory of one argon2id hash, in KiB. Older or cheaper hashes are renewed at login.'),
    argon2Passes: setting('ARGON2_PASSES', read.int(1, 1000), '2', 'Passes of argon2id over its memory.'),
  },
  'Login gate': {
    lockoutThreshold: setting('LOCKOUT_THRESHOLD', read.int(1, 100), '5', 'Failures that lock an account; each further failure locks again.'),
    lockoutMinutes: setting('LOCKOUT_MINUTES', read.reals(0, 525600), '15,30,60', 'Minutes of the first, second, third … lock; the last repeats.'),
    loginDelaysS: setting('LOGIN_DELAYS_S', read.reals(0, 600), '2,4,8', 'Seconds that the first, second, third … failed reply is held; the last repeats.'),
    mfaIssuer: setting('MFA_ISSUER', read.string, 'Portcullis', 'Name that authenticator apps show for accounts of this service.'),
    lockoutFamiliarSources: setting('LOCKOUT_FAMILIAR_SOURCES', read.flag, '1', 'Networks and devices that an account has logged in from count in a bucket of their own, so that strangers cannot lock the owner out.'),
  },
  'Other providers': {
    oauthProviders: setting('OAUTH_PROVIDERS_FILE', read.optional(oauthProviders), '', 'JSON file of the OpenID Connect providers that people may sign in with, [{"id", "issuer", "clientId", "clientSecret", "scopes"}]; for the eyes of the service alone.'),
    oauthRedirectUris: setting('OAUTH_REDIRECT_URIS', read.redirectUris, '', 'URIs that the redirect flow may deliver tokens to, compared byte for byte, comma-separated.'),
    oauthTimeoutMs: setting('OAUTH_TIMEOUT_MS', read.int(50, 10000), '5000', 'Longest time that one step of the redirect flow waits for the provider, in milliseconds.'),
  },
  'Risk signals': {
    geoipFile: setting('GEOIP_FILE', read.optional(read.string), '', 'MMDB file in the layout of GeoLite2, GeoIP2 or DB-IP (country, or city for positions); a replaced file is taken within 10 s.'),
    geoHeader: setting('GEO_HEADER', read.optional(read.headerName), '', 'Header in which a trusted proxy says where the client is, as DE or DE;52.52,13.40 (latitude, longitude); asked for what GEOIP_FILE does not know. The proxy must overwrite what clients send.'),
  },
  Limits: {
    limitLoginIp: setting('LIMIT_LOGIN_IP', read.limit, '0', 'Logins per client address, n/seconds; 0 is off, here and below.'),
    limitOAuth: setting('LIMIT_OAUTH', read.limit, '60/300', 'Sign-ins with another provider begun, per client address.'),
    limitRefreshSession: setting('LIMIT_REFRESH_SESSION', read.limit, '30/300', 'Refreshes per session.'),
    limitRefreshIp: setting('LIMIT_REFRESH_IP', read.limit, '300/300', 'Refreshes per client address (IPv6: per /64).'),
    limitMfa: setting('LIMIT_MFA', read.limit, '10/300', 'Changes of second factors tried, per account.'),
    limitDeleteRequest: setting('LIMIT_DELETE_REQUEST', read.limit, '3/300', 'Requests for a deletion code, per account.'),
    limitDelete: setting('LIMIT_DELETE', read.limit, '5/300', 'Deletions tried, per account.'),
    limitRestoreRequest: setting('LIMIT_RESTORE_REQUEST', read.limit, '3/300', 'Requests for a restore code, per client address.'),
    limitRestore: setting('LIMIT_RESTORE', read.limit, '5/300', 'Restores tried, per client address.'),
    limitRegister: setting('LIMIT_REGISTER', read.limit, '10/300', 'Sign-ups, per client address.'),
    limitRegisterAddress: setting('LIMIT_REGISTER_ADDRESS', read.limit, '3/86400', 'Sign-ups that write to one e-mail address, whoever sends them; further ones are answered alike and do nothing.'),
    limitEmailVerify: setting('LIMIT_EMAIL_VERIFY', read.limit, '20/300', 'Verification tokens tried, per client address.'),
    limitEmailResend: setting('LIMIT_EMAIL_RESEND', read.limit, '10/300', 'Requests for a verification mail, per client address.'),
    limitEmailResendAddress: setting('LIMIT_EMAIL_RESEND_ADDRESS', read.limit, '5/86400', 'Verification mails to one e-mail address on request; further requests are answered alike and do nothing.'),
    limitPasswordForgot: setting('LIMIT_PASSWORD_FORGOT', read.limit, '10/300', 'Requests for a password reset, per client address.'),
    limitPasswordForgotAddress: setting('LIMIT_PASSWORD_FORGOT_ADDRESS', read.limit, '3/3600', 'Reset mails to one e-mail address; further requests are answered alike and do nothing. A window no longer than PASSWORD_RESET_TTL_MIN never leaves the owner without a good token.'),
    limitPasswordReset: setting('LIMIT_PASSWORD_RESET', read.limit, '10/300', 'Reset tokens tried, per client address.'),
    limitPasswordChange: setting('LIMIT_PASSWORD_CHANGE', read.limit, '10/300', 'Password changes tried, per account.'),
    limitExport: setting('LIMIT_EXPORT', read.limit, '5/3600', 'Exports, per account.'),
  },
  'Sign-up and recovery': {
    linkBaseUrl: setting('LINK_BASE_URL', read.optional(read.baseUrl), '', 'Your own pages that mails link to: <base>/verify-email#token=… and <base>/reset-password#token=…; without it mails carry the bare token.'),
    emailVerificationTtlMin: setting('EMAIL_VERIFICATION_TTL_MIN', read.real(0.001, 43200), '1440', 'Lifetime of a verification token, in minutes.'),
    passwordResetTtlMin: setting('PASSWORD_RESET_TTL_MIN', read.real(0.001, 1440), '60', 'Lifetime of a reset token, in minutes.'),
    breachRangeUrl: setting('BREACH_RANGE_URL', read.optional(read.url('http:', 'https:')), '', 'Service that knows breached passwords by range, such as https://api.pwnedpasswords.com/range/; new passwords that it knows are refused. It is told five characters of a SHA-1, and passwords pass while it is down.'),
  },
  'Account life': {
    graceDays: setting('ACCOUNT_DELETION_GRACE_DAYS', read.int(1, 3650), '30', 'Days during which a deleted account can be restored.'),
    otpTtlMin: setting('ACCOUNT_DELETION_OTP_TTL_MIN', read.real(0.001, 1440), '15', 'Lifetime of a one-time code, in minutes.'),
    retentionCron: setting('ENABLE_RETENTION_CRON', read.flag, '0', 'Set to 1 to purge deleted accounts daily at 02:00.'),
    retentionDays: setting('ACCOUNT_RETENTION_DAYS', read.int(1, 3650), '30', 'Days after a deletion before the account is purged; not below the grace days.'),
    retentionTz: setting('RETENTION_TZ', read.string, 'UTC', 'Time zone of the daily purge.'),
    eventsKeepDays: setting('EVENTS_KEEP_DAYS', read.real(0.00001, 3650), '7', 'Days that the event stream keeps a message.'),
    identityHandlers: setting('IDENTITY_HANDLERS', read.list, '', 'Modules that take identity events in process, paths, comma-separated.'),
    deletionValidators: setting('DELETION_VALIDATORS', read.validators, '', 'Services asked before a deletion, such as bookings:required,crm:advisory.'),
  },
  Notifications: {
    notifyFile: setting('NOTIFY_FILE', read.optional(read.string), '', 'Each message becomes a JSON line in this file instead of being sent.'),
    smtpUrl: setting('SMTP_URL', read.optional(read.url('smtp:', 'smtps:')), '', 'Mail server, smtp:// or smtps://.'),
    smsUrl: setting('SMS_URL', read.optional(read.url('http:', 'https:')), '', 'Provider that takes SMS as signed JSON.'),
    whatsappUrl: setting('WHATSAPP_URL', read.optional(read.url('http:', 'https:')), '', 'Provider that takes WhatsApp messages as signed JSON.'),
    mailFrom: setting('MAIL_FROM', read.string, 'no-reply@localhost', 'Sender of mails.'),
    defaultCommsTenantId: setting('DEFAULT_COMMS_TENANT_ID', read.string, 'global', 'Tenant whose templates are used when none is given.'),
  },
  Logging: {
    logLevel: setting('LOG_LEVEL', read.oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', 'Least severe level that is written, as JSON lines on standard output.'),
  },
} satisfies Record<string, Record<string, Setting<unknown>>>;

type Groups = typeof SETTINGS;
type Merged = { [G in keyof Groups]: (x: Groups[G]) => void }[keyof Groups] extends (x: infer I) => void ? I : never;

/** The settings as values, typed by their readers. */
export type Config = { readonly [K in keyof Merged]: Merged[K] extends Setting<infer T> ? T : never };
