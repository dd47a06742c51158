import { readFile, stat } from 'node:fs/promises';
import { Reader, type Response } from 'maxmind';
import type { Config } from './config/settings.js';
import type { Call } from './http/call.js';
import type { Log } from './log.js';

/** Where a call seems to come from. */
export interface Place {
  /** ISO 3166-1, two capitals. */
  country: string;
  /** Degrees, to a hundredth (a kilometre or so): enough to reckon a journey. Both or neither. */
  latitude: number | null;
  longitude: number | null;
}

/** Tells places from addresses (GEOIP_FILE) or from what a trusted proxy says (GEO_HEADER). */
export interface Places {
  /** Whether any place can be told at all. */
  readonly isTelling: boolean;
  of(call: Pick<Call, 'ip' | 'headers' | 'viaProxy'>): Place | null;
  close(): void;
}

/** How often the file is looked at, in ms; a new one is taken as it comes. */
const WATCH_MS = 10_000;

/** @throws an Error that names the file that cannot be used */
export async function openPlaces({ geoipFile, geoHeader }: Pick<Config, 'geoipFile' | 'geoHeader'>, log: Log, watchMs = WATCH_MS): Promise<Places> {
  const file = geoipFile === null ? null : await watched(geoipFile, log, watchMs);
  return {
    isTelling: file !== null || geoHeader !== null,
    // The file first: of the two it knows more than a country.
    of: ({ ip, headers, viaProxy }) => file?.find(ip) ?? (geoHeader !== null && viaProxy && !headers.twice(geoHeader) ? readPlace(headers.get(geoHeader) ?? '') : null),
    close: () => file?.close(),
  };
}

/** Codes that proxies send when they do not know. */
const UNKNOWN = ['XX', 'ZZ'];

/** Reads `DE` or `DE;52.52,13.40` (latitude, longitude); null for anything else. */
export function readPlace(text: string): Place | null {
  const [, code, latitude, longitude] = /^([A-Za-z]{2})(?:; ?(-?\d{1,2}(?:\.\d{1,15})?), ?(-?\d{1,3}(?:\.\d{1,15})?))?$/.exec(text) ?? [];
  if (code === undefined) return null;
  return latitude === undefined ? placeOf(code.toUpperCase(), null, null) : placeOf(code.toUpperCase(), Number(latitude), Number(longitude));
}

function placeOf(country: unknown, latitude: unknown, longitude: unknown): Place | null {
  if (typeof country !== 'string' || !/^[A-Z]{2}$/.test(country) || UNKNOWN.includes(country)) return null;
  if (latitude === null && longitude === null) return { country, latitude: null, longitude: null };
  return isDegrees(latitude, 90) && isDegrees(longitude, 180) ? { country, latitude: rounded(latitude), longitude: rounded(longitude) } : null;
}

const isDegrees = (value: unknown, most: number): value is number => typeof value === 'number' && Math.abs(value) <= most;
const rounded = (degrees: number): number => Math.round(degrees * 100) / 100;

interface PlaceFile {
  find(ip: string): Place | null;
  close(): void;
}

/** Opens the file, and again whenever it was replaced; one that cannot be read leaves the former in use. */
async function watched(path: string, log: Log, watchMs: number): Promise<PlaceFile> {
  let seen = await stampOf(path).catch(() => '');
  let find = await load(path).catch((cause: unknown) => {
    throw new Error(`GEOIP_FILE ${path} cannot be used: ${(cause as Error).message}`, { cause });
  });
  let isLooking = false;

  async function look(): Promise<void> {
    const stamp = await stampOf(path);
    if (stamp === seen) return;
    seen = stamp;
    find = await load(path);
    log.info({ path }, 'GEOIP_FILE was replaced; the new one is in use');
  }

  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch((error: unknown) => log.error({ path, reason: (error as Error).message }, 'GEOIP_FILE cannot be read; the former one stays in use'))
      .finally(() => (isLooking = false));
  }, watchMs);
  timer.unref();
  return { find: (ip) => find(ip), close: () => clearInterval(timer) };
}

/** Changes with the file. */
async function stampOf(path: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(path);
  return `${ino} ${size} ${mtimeMs}`;
}

/** The layout of GeoLite2, GeoIP2 and DB-IP. */
type Entry = Response & { country?: { iso_code?: unknown }; location?: { latitude?: unknown; longitude?: unknown } };

const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
/** Entries kept decoded at most. */
const MOST_DECODED = 1000;

/** @throws an Error that says why the file is no MMDB database */
async function load(path: string): Promise<(ip: string) => Place | null> {
  const bytes = await readFile(path);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) throw new Error('it is packed by gzip; unpack it first');
  // By its format the marker stands in the last 128 KiB.
  if (!bytes.subarray(-128 * 1024).includes(MARKER)) throw new Error('it is no MMDB database, or its end is missing');
  const reader = new Reader<Entry>(bytes, { cache: decoded() });
  const { ipVersion, nodeCount, searchTreeSize } = reader.metadata;
  if (!(nodeCount > 0 && searchTreeSize + 16 < bytes.length) || (ipVersion !== 4 && ipVersion !== 6)) throw new Error('it is damaged');

  return (ip) => {
    // The reader would follow the bits of an IPv6 address through a tree of IPv4 addresses.
    if (ipVersion === 4 && ip.includes(':')) return null;
    try {
      const entry = reader.get(ip);
      return placeOf(entry?.country?.iso_code, entry?.location?.latitude ?? null, entry?.location?.longitude ?? null);
    } catch {
      // A damaged part of the tree: nothing is known of the addresses below it.
      return null;
    }
  };
}

function decoded(): { get(key: string | number): unknown; set(key: string | number, value: unknown): void } {
  const entries = new Map<string | number, unknown>();
  return {
    get: (key) => entries.get(key),
    set(key, value) {
      if (entries.size >= MOST_DECODED) entries.clear();
      entries.set(key, value);
    },
  };
}
