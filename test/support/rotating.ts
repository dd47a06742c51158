import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet } from 'jose';
import type * as KeyRotation from '../../src/auth/key-rotation.js';
import { listKeys } from '../../src/store/signing-keys.js';
import type { Client } from './client.js';
import { startNodes, type Nodes } from './nodes.js';
import { brokenBuild, type Break } from './racy.js';
import type { Teardown } from './stores.js';
import { fetched } from './witness.js';

const TIMES = 'dist/src/auth/key-times.js';

/** The times of a key's life, an hour made a fraction of a second; their relations stay. Committing a key may take the rest of its lead. */
const quick = (maxAgeMs: number): [Break, ...Break[]] => [
  [TIMES, 'maxAgeMs: 300_000', `maxAgeMs: ${maxAgeMs}`],
  [TIMES, 'servedMs: 2_700_000', 'servedMs: 60'],
  [TIMES, 'leadMs: 3_600_000', `leadMs: ${maxAgeMs + 130}`],
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
  /** For so long verifiers may keep the key set of this build, in ms. */
  maxAgeMs: number;
}

/** n nodes of a build whose keys live quickly, with pieces of it broken. */
export async function quickFleet(t: Teardown, n: number, settings: Record<string, string>, { maxAgeMs = 60, breaks = [] }: { maxAgeMs?: number; breaks?: Break[] } = {}): Promise<Fleet> {
  const [[file, from, to], ...more] = quick(maxAgeMs);
  const main = brokenBuild(t, file, from, to, ...more, ...breaks);
  const { rotate } = (await import(new URL('auth/key-rotation.js', pathToFileURL(main)).href)) as typeof KeyRotation;
  const nodes = await startNodes(t, n, settings, main);
  const rotations = async (): Promise<number> => (await listKeys(nodes.needs.mysql)).filter(({ activatedAt }) => activatedAt !== null).length - 1;
  return { ...nodes, rotate, rotations, maxAgeMs };
}

const anyOf = <T>(items: T[]): T => items[Math.floor(Math.random() * items.length)]!;

/**
 * A back end that keeps the key set for its whole max-age and asks for nothing in between, an unknown kid included.
 * The age counts from the request (RFC 9111 §4.2.3).
 */
function cachingVerifier({ nodes, maxAgeMs }: Fleet): (token: string) => Promise<unknown> {
  let kept: { asked: number; keys: ReturnType<typeof createLocalJWKSet> } | null = null;
  let fetching: Promise<void> | null = null;

  async function fetchSet(): Promise<void> {
    for (;;) {
      const asked = performance.now();
      const { response, text } = await fetched(`${anyOf(nodes).base}/.well-known/jwks.json`);
      const set = JSON.parse(text) as JSONWebKeySet;
      // A node that was held up shows nothing rather than an old set.
      if (response.status !== 200) continue;
      kept = { asked, keys: createLocalJWKSet(set) };
      return;
    }
  }
  return async (token) => {
    const called = performance.now();
    // What was asked for after the call is good for it, however long the reply took.
    while (kept === null || (kept.asked < called && performance.now() >= kept.asked + maxAgeMs)) await (fetching ??= fetchSet().finally(() => (fetching = null)));
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

/** By so much the clocks of this machine's programs may differ, in ms: they ask the database while it is busy. */
const CLOCKS_MS = 500;

/** Half of the life of a token here, in ms, and more: then each is checked once more. */
const LATE_MS = 3_500;

/** Users who refresh on all nodes, and verifiers who check each token when it is new and again before it ends. */
export function startLoad(fleet: Fleet, users: { client: Client; refreshToken: string }[]): { met: Met; stop: () => Promise<void> } {
  const met: Met = { issued: 0, keys: new Set(), unavailable: 0, refused: [] };
  const verifiers = Array.from({ length: 3 }, () => cachingVerifier(fleet));
  let over = false;
  const late: Promise<void>[] = [];

  async function check(token: string, when: string): Promise<void> {
    await Promise.all(verifiers.map((verify) => verify(token).catch((error: unknown) => refused(token, `${when}, by a verifier: ${String(error)}`))));
    const { status } = await anyOf(fleet.nodes).client().profile(token);
    if (status === 503) met.unavailable += 1;
    else if (status !== 200) refused(token, `${when}, by a node: ${status}`);
  }

  function refused(token: string, why: string): void {
    const leftMs = decodeJwt(token).exp! * 1000 - Date.now();
    // On a machine that is busy it may have ended on the way; whoever reads the token has a clock of its own.
    if (leftMs > CLOCKS_MS) met.refused.push(`${why}, ${leftMs} ms before its end`);
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
    await check(token, 'late');
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
