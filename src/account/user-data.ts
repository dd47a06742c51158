import type { Erasure, Field, Rows } from '../store/personal-data.js';
import { STRANGER_LAPSED } from '../store/gate-locks.js';
import { FAMILIAR_DAYS } from '../store/login-accounts.js';

/** A field of the export; one with `csvOnly` is missing from the JSON document. */
export interface SheetField extends Field {
  csvOnly?: true;
}

export interface Sheet extends Rows {
  name: string;
  fields: readonly SheetField[];
}

/** What is done with one table that holds something about a person. */
export interface UserTable {
  /** The column that holds the user id. */
  owner: string;
  purge: Erasure;
  /** Rows that end by themselves, by condition; the nightly task erases them whoever they belong to. */
  lapse?: readonly { where: string; erasure: Erasure }[];
  /** What the export shows of it, or why it shows nothing. Columns of this table are written t.column. */
  sheet: Sheet | string;
  /** Columns of a table with a sheet that the export leaves out, and why. */
  withheld?: Readonly<Record<string, string>>;
}

const text = (name: string, column: string): SheetField => ({ name, column, as: 'text' });
const time = (name: string, column: string): SheetField => ({ name, column, as: 'time' });
const flag = (name: string, column: string): SheetField => ({ name, column, as: 'flag' });
const csvOnly = (field: SheetField): SheetField => ({ ...field, csvOnly: true });

const gone: Erasure = { how: 'delete' };

/** Days after its end that a session becomes a tombstone, and days that the tombstone stays. */
const SESSION_DAYS = 30;
const daysAgo = (days: number): string => `UTC_TIMESTAMP(3) - INTERVAL ${days} DAY`;

// A refresh token of it is told REFRESH_SESSION_DELETED, to which nobody's name is needed.
const tombstone: Erasure = {
  how: 'blank',
  set: { user_id: 'NULL', successor_seal: 'NULL', device: 'NULL', ip_address: 'NULL', deleted_at: 'COALESCE(deleted_at, UTC_TIMESTAMP(3))' },
  keeps: {
    id: 'random; what a refresh token names',
    generation: 'a count',
    secret_hash: 'tells the holder of the token from a stranger',
    rotated_at: 'a time',
    amr: 'which factors were used',
    created_at: 'a time',
    expires_at: 'a time',
    absolute_expires_at: 'a time',
    revoked_at: 'a time',
    revoked_reason: 'a word from a list',
  },
};

/**
 * Every table that holds something about a person: how the purge erases it and what the export shows of it. Both do
 * what stands here, in this order, and a test compares it with the schema, column by column.
 */
export const USER_TABLES: Readonly<Record<string, UserTable>> = {
  users: {
    owner: 'id',
    purge: gone,
    sheet: {
      name: 'user',
      from: 'users t',
      owner: 't.id',
      key: 't.id',
      fields: [
        text('id', 't.id'),
        text('email', 't.email'),
        time('createdAt', 't.created_at'),
        text('status', 't.status'),
        flag('phoneVerified', 't.phone_verified_at'),
        flag('emailVerified', 't.email_verified_at'),
      ],
    },
    withheld: {
      phone: 'no field of the document',
      password_hash: 'a secret',
      locked_until: 'tells an attacker what the gate does',
      gate_locked_until: 'tells an attacker what the gate does',
      lock_step: 'tells an attacker what the gate does',
      deleted_at: 'nobody can sign in while it is set',
    },
  },
  profiles: {
    owner: 'user_id',
    purge: gone,
    sheet: {
      name: 'profiles',
      from: 'profiles t',
      owner: 't.user_id',
      key: 't.id',
      fields: [text('provider', 't.provider'), text('givenName', 't.given_name'), text('familyName', 't.family_name'), time('createdAt', 't.created_at')],
    },
    withheld: { id: 'no field of the document', user_id: 'stands in the sheet of the user' },
  },
  user_roles: {
    owner: 'user_id',
    purge: gone,
    sheet: {
      name: 'roles',
      from: 'user_roles t JOIN roles r ON r.id = t.role_id',
      owner: 't.user_id',
      key: 't.role_id',
      fields: [text('id', 't.role_id'), text('name', 'r.name'), text('description', 'r.description')],
    },
    withheld: { user_id: 'stands in the sheet of the user' },
  },
  user_tenants: {
    owner: 'user_id',
    purge: gone,
    sheet: {
      name: 'tenants',
      from: 'user_tenants t JOIN tenants n ON n.id = t.tenant_id',
      owner: 't.user_id',
      key: 't.tenant_id',
      fields: [text('id', 't.tenant_id'), text('name', 'n.name'), text('slug', 'n.slug')],
    },
    withheld: { user_id: 'stands in the sheet of the user' },
  },
  sessions: {
    owner: 'user_id',
    purge: tombstone,
    lapse: [
      { where: `deleted_at IS NULL AND expires_at < ${daysAgo(SESSION_DAYS)}`, erasure: tombstone },
      { where: `deleted_at IS NULL AND revoked_at < ${daysAgo(SESSION_DAYS)}`, erasure: tombstone },
      { where: `deleted_at < ${daysAgo(SESSION_DAYS)}`, erasure: gone },
    ],
    sheet: {
      name: 'sessions',
      from: 'sessions t',
      owner: 't.user_id',
      key: 't.id',
      fields: [
        text('id', 't.id'),
        time('createdAt', 't.created_at'),
        csvOnly(time('expiresAt', 't.expires_at')),
        text('device', 't.device'),
        text('ipAddress', 't.ip_address'),
        csvOnly(time('revokedAt', 't.revoked_at')),
      ],
    },
    withheld: {
      user_id: 'stands in the sheet of the user',
      generation: 'internal',
      secret_hash: 'a secret',
      successor_seal: 'a secret',
      rotated_at: 'internal',
      amr: 'no field of the document',
      absolute_expires_at: 'no field of the document',
      revoked_reason: 'no field of the document',
      deleted_at: 'a deleted session belongs to nobody',
    },
  },
  mfa_factors: {
    owner: 'user_id',
    purge: gone,
    lapse: [{ where: `verified_at IS NULL AND created_at < ${daysAgo(1)}`, erasure: gone }],
    sheet: {
      name: 'mfa',
      from: 'mfa_factors t',
      owner: 't.user_id',
      key: 't.id',
      fields: [text('method', 't.method'), flag('verified', 't.verified_at'), time('createdAt', 't.created_at')],
    },
    withheld: { id: 'no field of the document', user_id: 'stands in the sheet of the user', secret: 'a secret', last_step: 'internal' },
  },
  audit_log: {
    owner: 'user_id',
    purge: {
      how: 'blank',
      set: { user_id: 'NULL', ip_address: 'NULL', country: 'NULL', session_id: 'NULL', detail: 'NULL' },
      keeps: { id: 'a count', subject: 'a keyed hash: proves what was done without a name', action: 'a word from a list', status: 'a word from a list', created_at: 'a time' },
    },
    sheet: {
      name: 'auditLog',
      from: 'audit_log t',
      owner: 't.user_id',
      key: 't.id',
      fields: [text('action', 't.action'), time('createdAt', 't.created_at'), text('ipAddress', 't.ip_address'), csvOnly(text('status', 't.status'))],
    },
    withheld: {
      id: 'tells how much the service does',
      user_id: 'stands in the sheet of the user',
      subject: 'a keyed hash',
      detail: 'notes for operators',
      session_id: 'no field of the document; GET /api/auth/security-events shows it',
      country: 'no field of the document; GET /api/auth/security-events shows it',
    },
  },
  mfa_recovery_codes: { owner: 'user_id', purge: gone, sheet: 'hashes of secrets' },
  mfa_tokens: { owner: 'user_id', purge: gone, lapse: [{ where: 'expires_at < UTC_TIMESTAMP(3)', erasure: gone }], sheet: 'hashes of secrets that live for minutes' },
  account_tokens: { owner: 'user_id', purge: gone, lapse: [{ where: 'expires_at < UTC_TIMESTAMP(3)', erasure: gone }], sheet: 'hashes of secrets that live for a while' },
  oauth_identities: { owner: 'user_id', purge: gone, sheet: 'names of the person at other providers; the profiles say which' },
  login_sources: { owner: 'user_id', purge: gone, lapse: [{ where: `last_seen_at < ${daysAgo(FAMILIAR_DAYS)}`, erasure: gone }], sheet: 'keyed hashes; the addresses behind them stand with the sessions and in the audit log' },
  login_places: { owner: 'user_id', purge: gone, lapse: [{ where: `last_seen_at < ${daysAgo(FAMILIAR_DAYS)}`, erasure: gone }], sheet: 'told from the addresses that stand with the sessions and in the audit log' },
  notification_outbox: { owner: 'user_id', purge: gone, sheet: 'messages on their way to the same person' },
  // What is not published yet goes out first; the relay deletes it with the last event of the account.
  event_outbox: { owner: 'user_id', purge: { how: 'delete', only: 'published_at IS NOT NULL' }, sheet: 'repeats what the audit log says' },
};

/** Tables that say nothing about a person, and what they hold. */
export const OTHER_TABLES: Readonly<Record<string, string>> = {
  roles: 'names of roles',
  tenants: 'names of tenants',
  signing_keys: 'keys of the service',
  secret_changes: 'when the former SECRET_KEY was in use last',
  schedules: 'when a task was done, and by which node',
  stranger_locks: 'locks of addresses without an account, by keyed hash, for a day after their end',
  schema_migrations: 'which migrations ran',
};

/** Rows of these tables that end by themselves; the nightly task erases them. */
export const OTHER_LAPSES: readonly { table: string; where: string }[] = [{ table: 'stranger_locks', where: STRANGER_LAPSED }];

/**
 * Every key of Redis (`KEYS` in store/redis.ts): what names a person in it, and why neither purge nor export reads it.
 * No key or value holds an address or a user id, and each has a TTL far below the days that an account stays deleted.
 */
export const REDIS_KEYS: Readonly<Record<string, { person: 'keyed hash' | 'none'; purge: string; export: string }>> = {
  gate: { person: 'keyed hash', purge: 'lapses 24 h after the last failure or lock', export: 'counts of the gate' },
  gateHeld: { person: 'keyed hash', purge: 'lapses after 30 s', export: 'attempts under way' },
  limit: { person: 'keyed hash', purge: 'lapses with its window', export: 'counts of the limits' },
  otp: { person: 'keyed hash', purge: 'lapses with the code, or 3 h after the last failure', export: 'hashes of secrets' },
  otpIssues: { person: 'keyed hash', purge: 'lapses 24 h after the last issue', export: 'counts of codes' },
  oauthFlow: { person: 'none', purge: 'lapses after 10 min', export: 'a sign-in at another provider, before anyone knows whose' },
  events: { person: 'none', purge: 'trimmed after EVENTS_KEEP_DAYS: consumers must hear of the purge by name', export: 'repeats what the audit log says' },
  relayLease: { person: 'none', purge: 'lapses after 1 s', export: 'which node relays' },
  deletionAnswers: { person: 'none', purge: 'lapses with the question', export: 'what other services said' },
};

export const SHEETS: readonly Sheet[] = Object.values(USER_TABLES).flatMap(({ sheet }) => (typeof sheet === 'string' ? [] : [sheet]));
