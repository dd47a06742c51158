import type { Place } from '../places.js';
import { tuples, type Tx } from './mysql.js';

/** Notes that accounts logged in from these places now. */
export async function rememberPlaces(tx: Tx, seen: { id: string; place: Place }[]): Promise<void> {
  if (seen.length === 0) return;
  // In one order, so that two transactions do not each wait for a row that the other holds.
  const rows = seen.map(({ id, place }) => [id, place.country, place.latitude, place.longitude]).sort(([a], [b]) => (a! < b! ? -1 : 1));
  await tx.run(
    `INSERT INTO login_places (user_id, country, latitude, longitude) VALUES ${tuples(rows)}
     ON DUPLICATE KEY UPDATE latitude = VALUES(latitude), longitude = VALUES(longitude), last_seen_at = UTC_TIMESTAMP(3)`,
    rows.flat(),
  );
}
