type Headers = Record<string, string>;

/** CORS (WHATWG Fetch §3.2) for the origins that are listed, each byte for byte. */
export interface Cors {
  /** Everything that `grantTo` gives but to a preflight; null where nothing is ever granted. */
  readonly grants: readonly (Headers | null)[];
  /** What a reply to that origin says. `allow` is for a preflight: the methods of its path. */
  grantTo(origin: string | undefined, allow: string | null): Headers | null;
}

export function createCors(origins: string[]): Cors {
  if (origins.length === 0) return { grants: [null], grantTo: () => null };
  const grants = new Map(origins.map((origin) => [origin, granting(origin)]));
  return {
    grants: [UNGRANTED, ...grants.values()],
    grantTo(origin = '', allow) {
      const granted = grants.get(origin) ?? UNGRANTED;
      if (granted === UNGRANTED || allow === null) return granted;
      return {
        ...granted,
        'Access-Control-Allow-Methods': allow,
        'Access-Control-Allow-Headers': 'Content-Type, Authorization, X-XSRF-Token, X-Token-Delivery',
        'Access-Control-Max-Age': '600',
      };
    },
  };
}

const granting = (origin: string): Headers => ({
  'Vary': 'Origin',
  'Access-Control-Allow-Origin': origin,
  'Access-Control-Allow-Credentials': 'true',
  'Access-Control-Expose-Headers': 'X-XSRF-Token, X-Request-Id, Retry-After',
});

const UNGRANTED: Headers = { Vary: 'Origin' };
