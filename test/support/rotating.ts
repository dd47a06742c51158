import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet } from 'jose';
import type * as KeyRotation from '../../src/auth/key-rotation.js';
import { listKeys } from '../../src/store/signing-keys.js';
import type { Client } from './client.js';
import { startNodes, type Node, type Nodes } from './nodes.js';
import { brokenBuild, type Break } from './racy.js';
import type { Teardown } from './stores.js';

const TIMES = 'dist/src/auth/key-times.js';
/** For so long verifiers keep the key set here, in ms. */
const MAX_AGE_MS = 60;

/** The times of a key's life, an hour made a seventh of a second; their relations stay. */
const QUICK: Break[] = [
  [TIMES, 'maxAgeMs: 300_000', `maxAgeMs: ${MAX_AGE_MS}`],
  [TIMES, 'servedMs: 2_700_000', 'servedMs: 75'],
  [TIMES, 'leadMs: 3_600_000', 'leadMs: 140'],
  [TIMES, 'trustMs: 300_000', 'trustMs: 1000'],
  [TIMES, 'holdMs: 900_000', 'holdMs: 1500'],
  [TIMES, 'pollMs: 2_000', 'pollMs: 15'],
  [TIMES, 'rereadMs: 250', 'rereadMs: 5'],
  [TIMES, "upkeepAt: '* * * * *'", "upkeepAt: '* * * * * *'"],
];

export interface Fleet extends Nodes {
  /** `rotate` as this build has it. */
  rotate: typeof KeyRotation.rotate;
  /** How often another key has begun to sign. */
  rotations: () => Promise<number>;
}

/** n nodes of a build whose keys live quickly, with pieces of it broken. */
export async function quickFleet(t: Teardown, n: number, settings: Record<string, string>, ...breaks: Break[]): Promise<Fleet> {
  const [[file, from, to], ...more] = [...QUICK, ...breaks] as [Break, ...Break[]];
  const main = brokenBuild(t, file, from, to, ...more);
  const { rotate } = (await import(new URL('auth/key-rotation.js', pathToFileURL(main)).href)) as typeof KeyRotation;
  const nodes = await startNodes(t, n, settings, main);
  const rotations = async (): Promise<number> => (await listKeys(nodes.needs.mysql)).filter(({ activatedAt }) => activatedAt !== null).length - 1;
  return { ...nodes, rotate, rotations };
}

const anyOf = <T>(items: T[]): T => items[Math.floor(Math.random() * items.length)]!;

/**
 * A back end that keeps the key set for its whole max-age and asks for nothing in between, an unknown kid included.
 * The age counts from the request (RFC 9111 §4.2.3).
 */
export function cachingVerifier(nodes: Node[]): (token: string) => Promise<unknown> {
  let kept: { until: number; keys: ReturnType<typeof createLocalJWKSet> } | null = null;
  let fetching: Promise<void> | null = null;

  async function fetchSet(): Promise<void> {
    for (;;) {
      const asked = performance.now();
      const response = await fetch(`${anyOf(nodes).base}/.well-known/jwks.json`);
      const set = (await response.json()) as JSONWebKeySet;
      // A node that was held up shows nothing rather than an old set.
      if (response.status !== 200) continue;
      kept = { until: asked + MAX_AGE_MS, keys: createLocalJWKSet(set) };
      return;
    }
  }
  return async (token) => {
    while (kept === null || performance.now() >= kept.until) await (fetching ??= fetchSet().finally(() => (fetching = null)));
    return jwtVerify(token, kept.keys, { typ: 'at+jwt', issuer: 'portcullis', audience: 'portcullis' });
  };
}

/** What users and back ends met while keys were rotated. */
export interface Met {
  issued: number;
  keys: Set<string>;
  /** Replies 503: a node that was held up. */
  unavailable: number;
  /** Valid tokens that somebody refused, and why. */
  refused: string[];
}

/** Half of the life of a token here, in ms, and more: then each is checked once more. */
const LATE_MS = 3_500;

/** Users who refresh on all nodes, and verifiers who check each token when it is new and again before it ends. */
export function startLoad(fleet: Fleet, users: { client: Client; refreshToken: string }[]): { met: Met; stop: () => Promise<void> } {
  const met: Met = { issued: 0, keys: new Set(), unavailable: 0, refused: [] };
  const verifiers = Array.from({ length: 3 }, () => cachingVerifier(fleet.nodes));
  let over = false;
  const late: Promise<void>[] = [];

  async function check(token: string, when: string): Promise<void> {
    await Promise.all(verifiers.map((verify) => verify(token).catch((error: unknown) => met.refused.push(`${when}, by a verifier: ${String(error)}`))));
    const { status } = await anyOf(fleet.nodes).client().profile(token);
    if (status === 503) met.unavailable += 1;
    else if (status !== 200) met.refused.push(`${when}, by a node: ${status}`);
  }

  async function use({ refreshToken }: { refreshToken: string }): Promise<void> {
    for (let token = refreshToken; !over; ) {
      const { status, body } = await anyOf(fleet.nodes).client().refresh(token);
      if (status === 503) met.unavailable += 1;
      else if (status !== 200) throw new Error(`a refresh was answered with ${status} ${String(body['code'])}`);
      else {
        token = body['refreshToken'] as string;
        const access = body['accessToken'] as string;
        met.issued += 1;
        met.keys.add((JSON.parse(Buffer.from(access.split('.')[0]!, 'base64url').toString()) as { kid: string }).kid);
        await check(access, 'new');
        late.push(checkLate(access));
      }
      await sleep(20);
    }
  }

  async function checkLate(token: string): Promise<void> {
    const bornAt = performance.now();
    while (!over && performance.now() - bornAt < LATE_MS) await sleep(100);
    if (decodeJwt(token).exp! * 1000 - Date.now() > 500) await check(token, 'late');
  }

  const running = users.map((user) => use(user));
  return {
    met,
    async stop() {
      over = true;
      await Promise.all(running);
      await Promise.all(late);
    },
  };
}
