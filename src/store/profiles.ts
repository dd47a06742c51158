import { coalesce } from './coalesce.js';
import type { GatherOptions } from './gather.js';
import type { Mysql } from './mysql.js';
import { liveSessions } from './sessions.js';
import type { Status } from './users.js';

export interface Profile {
  id: string;
  email: string;
  emailVerified: boolean;
  phone: string | null;
  phoneVerified: boolean;
  status: Status;
  createdAt: Date;
  profiles: { provider: string; givenName: string | null; familyName: string | null; createdAt: Date }[];
  roles: { id: string; name: string; description: string | null }[];
  tenants: { id: string; name: string; slug: string }[];
  mfaEnabled: boolean;
}

const COLUMNS = `
  s.id AS sessionId, u.id, u.email, u.email_verified_at IS NOT NULL AS emailVerified, u.phone, u.phone_verified_at IS NOT NULL AS phoneVerified, u.status, u.created_at AS createdAt,
    p.id AS profileId, p.provider, p.given_name AS givenName, p.family_name AS familyName, p.created_at AS profileCreatedAt,
    r.id AS roleId, r.name AS roleName, r.description AS roleDescription, t.id AS tenantId, t.name AS tenantName, t.slug, f.id AS factorId`;

/**
 * Roles and tenants in rows of their own (arms 0 and 1), or an account in many of both would give their product.
 * Joins rather than aggregated subqueries, which cost ten times as much.
 */
const LISTS = `
  CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1) arm
  LEFT JOIN profiles p ON arm.n = 0 AND p.user_id = u.id
  LEFT JOIN mfa_factors f ON arm.n = 0 AND f.user_id = u.id AND f.verified_at IS NOT NULL
  LEFT JOIN user_roles ur ON arm.n = 0 AND ur.user_id = u.id LEFT JOIN roles r ON r.id = ur.role_id
  LEFT JOIN user_tenants ut ON arm.n = 1 AND ut.user_id = u.id LEFT JOIN tenants t ON t.id = ut.tenant_id`;

interface ProfileRow extends Pick<Profile, 'id' | 'email' | 'phone' | 'status' | 'createdAt'> {
  sessionId: string;
  emailVerified: unknown;
  phoneVerified: unknown;
  profileId: string | null;
  provider: string;
  givenName: string | null;
  familyName: string | null;
  profileCreatedAt: Date;
  roleId: string | null;
  roleName: string;
  roleDescription: string | null;
  tenantId: string | null;
  tenantName: string;
  slug: string;
  factorId: string | null;
}

/** A profile whose lists are still keyed by row id, since a join repeats them. */
interface Gathered {
  user: ProfileRow;
  profiles: Map<string, Profile['profiles'][number]>;
  roles: Map<string, Profile['roles'][number]>;
  tenants: Map<string, Profile['tenants'][number]>;
  mfaEnabled: boolean;
}

/** Reads the profile of whoever holds a session, if it is alive and the account active; reads that come close together become one statement. */
export function liveProfileReader(mysql: Mysql, onBatch?: GatherOptions['onBatch']): (sessionId: string) => Promise<Profile | null> {
  return coalesce(async (ids: string[]) => {
    const found = new Map<string, Gathered>();
    for (const row of await mysql.rows<ProfileRow>(`SELECT ${COLUMNS} FROM ${liveSessions(ids.length, LISTS)}`, ids)) {
      let one = found.get(row.sessionId);
      if (!one) found.set(row.sessionId, (one = { user: row, profiles: new Map(), roles: new Map(), tenants: new Map(), mfaEnabled: false }));
      add(one, row);
    }
    return new Map([...found].map(([id, one]) => [id, profile(one)]));
  }, onBatch);
}

function add(to: Gathered, row: ProfileRow): void {
  if (row.profileId !== null) to.profiles.set(row.profileId, { provider: row.provider, givenName: row.givenName, familyName: row.familyName, createdAt: row.profileCreatedAt });
  if (row.roleId !== null) to.roles.set(row.roleId, { id: row.roleId, name: row.roleName, description: row.roleDescription });
  if (row.tenantId !== null) to.tenants.set(row.tenantId, { id: row.tenantId, name: row.tenantName, slug: row.slug });
  if (row.factorId !== null) to.mfaEnabled = true;
}

const profile = ({ user, profiles, roles, tenants, mfaEnabled }: Gathered): Profile => ({
  id: user.id,
  email: user.email,
  emailVerified: Boolean(user.emailVerified),
  phone: user.phone,
  phoneVerified: Boolean(user.phoneVerified),
  status: user.status,
  createdAt: user.createdAt,
  profiles: [...profiles.values()],
  roles: [...roles.values()],
  tenants: [...tenants.values()],
  mfaEnabled,
});
