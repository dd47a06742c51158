import { coalesce } from './coalesce.js';
import { list } from './json-columns.js';
import { marks, type Mysql } from './mysql.js';
import type { Status } from './users.js';

export interface Profile {
  id: string;
  email: string;
  emailVerified: boolean;
  phone: string | null;
  phoneVerified: boolean;
  status: Status;
  createdAt: Date;
  profiles: { provider: string; givenName: string | null; familyName: string | null; createdAt: string }[];
  roles: { id: string; name: string; description: string | null }[];
  tenants: { id: string; name: string; slug: string }[];
  mfaEnabled: boolean;
}

const PROFILE = `
  SELECT u.id, u.email, u.email_verified_at IS NOT NULL AS emailVerified, u.phone, u.phone_verified_at IS NOT NULL AS phoneVerified, u.status, u.created_at AS createdAt,
    (SELECT JSON_ARRAYAGG(JSON_OBJECT('provider', p.provider, 'givenName', p.given_name, 'familyName', p.family_name, 'createdAt', DATE_FORMAT(p.created_at, '%Y-%m-%dT%H:%i:%s.%fZ'))) FROM profiles p WHERE p.user_id = u.id) AS profiles,
    (SELECT JSON_ARRAYAGG(JSON_OBJECT('id', r.id, 'name', r.name, 'description', r.description)) FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = u.id) AS roles,
    (SELECT JSON_ARRAYAGG(JSON_OBJECT('id', t.id, 'name', t.name, 'slug', t.slug)) FROM user_tenants ut JOIN tenants t ON t.id = ut.tenant_id WHERE ut.user_id = u.id) AS tenants,
    EXISTS (SELECT 1 FROM mfa_factors f WHERE f.user_id = u.id AND f.verified_at IS NOT NULL) AS mfaEnabled
  FROM users u`;

type ProfileRow = { [K in keyof Profile]: unknown };

/** Reads profiles by user id; the reads of one event-loop turn become one statement. */
export function profileReader(mysql: Mysql): (id: string) => Promise<Profile | null> {
  return coalesce(async (ids: string[]) => {
    const rows = await mysql.rows<ProfileRow>(`${PROFILE} WHERE u.id IN (${marks(ids.length)})`, ids);
    return new Map(rows.map((row) => [row.id as string, profile(row)]));
  }, 16);
}

function profile(row: ProfileRow): Profile {
  return {
    ...(row as Profile),
    emailVerified: Boolean(row.emailVerified),
    phoneVerified: Boolean(row.phoneVerified),
    mfaEnabled: Boolean(row.mfaEnabled),
    profiles: list<Profile['profiles'][number]>(row.profiles).map((one) => ({ ...one, createdAt: new Date(one.createdAt).toISOString() })),
    roles: list(row.roles),
    tenants: list(row.tenants),
  };
}
