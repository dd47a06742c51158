import { pause } from '../support/attempts.js';
import type { Answer, Client } from '../support/client.js';
import type { Chance } from './chance.js';
import type { Place, World } from './world.js';

/** What a kind of request may be answered amid faults: its own statuses, and always 503. */
const EXPECTED = {
  login: [200],
  // Its account is guessed at and gets locked, and its hash may be poison.
  guess: [401, 429],
  profile: [200],
  refresh: [200],
  // One of many, or of a session whose state a lost reply left open.
  race: [200, 401],
  logout: [204],
  'deletion code': [204],
  // A code is lost with Redis, used up by another request, or locked; whoever comes after the deletion is signed out.
  deletion: [200, 400, 401, 429],
  'restore code': [204],
  restore: [200, 400, 410, 429],
  'sign-up': [202],
  'proof of address': [204, 400],
} as const;

export type Kind = keyof typeof EXPECTED;

/** An attempt that was being verified when Redis lost its ticket is refused: nobody is let in uncounted. Nobody may be locked out, though. */
const LOST_TICKET = 'LOGIN_THROTTLED';
const isExpected = (kind: Kind, { status, body }: Answer): boolean =>
  status === 503 || (EXPECTED[kind] as readonly number[]).includes(status) || (kind === 'login' && body['code'] === LOST_TICKET);

/** Sends requests to nodes that are there, and complains of replies that must not be. */
export interface Asking {
  /** How often which kind was answered with which status; `cut` when its node was ended meanwhile. */
  counts: Map<string, number>;
  /** To a node of chance; null when its node was ended before it answered. */
  ask: (kind: Kind, send: (client: Client) => Promise<Answer>, place?: Place) => Promise<Answer | null>;
}

export function createAsking({ places, complaints }: Pick<World, 'places' | 'complaints'>, chance: Chance): Asking {
  const counts = new Map<string, number>();
  const count = (key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1);

  async function ask(kind: Kind, send: (client: Client) => Promise<Answer>, chosen?: Place): Promise<Answer | null> {
    const place = chosen ?? (await standing());
    const { node, isDoomed } = place;
    try {
      const answer = await send(node.client());
      count(`${kind} ${answer.status}`);
      if (!isExpected(kind, answer)) complaints.push(`${kind}: ${answer.status} ${answer.text.slice(0, 300)} at ${place.name}`);
      return answer;
    } catch (error) {
      if (isDoomed || place.isDoomed || place.node !== node) count(`${kind} cut`);
      else complaints.push(`${kind}: no reply from ${place.name}: ${String(error)} ${String((error as Error).cause)}`);
      return null;
    }
  }

  async function standing(): Promise<Place> {
    for (;;) {
      const found = places.filter(({ isDoomed }) => !isDoomed);
      if (found.length > 0) return chance.pick(found);
      await pause(20);
    }
  }

  return { counts, ask };
}
