import type { Place } from '../places.js';
import type { LoginAccount, SeenPlace } from '../store/login-accounts.js';

/** What may be unusual about where a login comes from. */
export const RISKS = ['new_network', 'new_device', 'new_country', 'impossible_travel'] as const;
export type Risk = (typeof RISKS)[number];

/** Nobody travels faster than an airliner; what is told of a place may be wrong by some hundred kilometres. */
const MOST_KM_PER_HOUR = 900;
const LEAST_KM = 300;

/** What is unusual about a login. A first login has nothing to differ from, and a place that nobody can tell differs from none. */
export function risksOf(account: Pick<LoginAccount, 'seenBefore' | 'knownNetwork' | 'knownDevice' | 'places'>, place: Place | null): Risk[] {
  if (!account.seenBefore) return [];
  const { places } = account;
  const unusual: Record<Risk, boolean> = {
    new_network: !account.knownNetwork,
    new_device: !account.knownDevice,
    new_country: place !== null && places.length > 0 && places.every(({ country }) => country !== place.country),
    impossible_travel: place !== null && places.some((from) => isImpossible(from, place)),
  };
  return RISKS.filter((risk) => unusual[risk]);
}

function isImpossible(from: SeenPlace, to: Place): boolean {
  if (from.latitude === null || from.longitude === null || to.latitude === null || to.longitude === null) return false;
  const km = kmBetween([from.latitude, from.longitude], [to.latitude, to.longitude]);
  return km > LEAST_KM && km > MOST_KM_PER_HOUR * (from.msAgo / 3_600_000);
}

type Position = readonly [latitude: number, longitude: number];
const EARTH_KM = 6371;

/** Along the surface, by the haversine formula. Degrees in, kilometres out. */
export function kmBetween([lat1, lon1]: Position, [lat2, lon2]: Position): number {
  const half = (a: number, b: number): number => Math.sin(((b - a) * Math.PI) / 360) ** 2;
  const cosines = Math.cos((lat1 * Math.PI) / 180) * Math.cos((lat2 * Math.PI) / 180);
  return 2 * EARTH_KM * Math.asin(Math.min(1, Math.sqrt(half(lat1, lat2) + cosines * half(lon1, lon2))));
}
