import { createHash } from 'node:crypto';
import { exportJWK, importSPKI, type CryptoKey } from 'jose';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { listKeys, raiseTokenLife, type KeyState, type StoredKey } from '../store/signing-keys.js';
import { openKey, WrongSecret } from './key-pair.js';
import { ensureKeys, keyIn } from './key-rotation.js';
import { KEY_TIMES, type KeyTimes } from './key-times.js';

export interface SigningKeys {
  /**
   * The key that signs now. `privateKey` is PKCS #8, PEM.
   * @throws ApiError UNAVAILABLE when the keys could not be read for so long that another one may sign by now
   */
  current(): { kid: string; alg: Deps['config']['jwtAlg']; privateKey: string };
  /** The public key of a kid with its one algorithm, or null. An unknown kid is looked up, a few times a second at most. */
  find(kid: string): Promise<{ alg: string; key: CryptoKey } | null>;
  /** Whether tokens of this kid are still good, by what was read last. */
  knows(kid: string): boolean;
  /** The key set for verifiers. */
  published(): KeySet;
  /** Reads the keys anew. */
  reread(): Promise<void>;
  close(): void;
}

export interface KeySet {
  /** JSON (RFC 7517 §5), and its entity tag. */
  body: string;
  etag: string;
  /** How long ago it was read, in ms. */
  ageMs: number;
}

type Needs = Pick<Deps, 'mysql' | 'keyring' | 'log'> & { config: Pick<Deps['config'], 'jwtAlg' | 'accessTtlS' | 'jwtRotateDays'> };
type Signer = ReturnType<SigningKeys['current']>;

/** A kid is the SHA-256 of a key in base64url; nothing else is worth a look into the store. */
const KID = /^[\w-]{43}$/;

/** In this order: a verifier that looks at one key alone should see the one that signs. */
const SHOWN: KeyState[] = ['active', 'next', 'retiring'];

/** Opens the keys that all nodes share and follows their changes; the first node of all makes them. */
export async function openSigningKeys(needs: Needs, times: KeyTimes = KEY_TIMES): Promise<SigningKeys> {
  const { mysql, keyring, config, log } = needs;
  const known = new Map<string, { alg: string; key: CryptoKey; jwk: object }>();
  let retired = new Set<string>();
  let signer: Signer | null = null;
  let set = { body: '', etag: '' };
  /** By performance.now(), just before the newest reading, and before the newest that succeeded. */
  let triedAt = -Infinity;
  let readAt = -Infinity;

  async function read(): Promise<void> {
    const startedAt = (triedAt = performance.now());
    await take(await readEnough());
    readAt = startedAt;
  }

  /** The keys, each of those that may sign marked for tokens that live as long as this node's. */
  async function readEnough(): Promise<StoredKey[]> {
    const keys = await listKeys(mysql);
    // Rows may be deleted by hand.
    if (!keyIn(keys, 'active')) return ensureKeys(needs);
    if (keys.every(({ state, tokenLifeS }) => !(state === 'next' || state === 'active') || tokenLifeS >= config.accessTtlS)) return keys;
    await raiseTokenLife(mysql, config.accessTtlS);
    return listKeys(mysql);
  }

  async function take(keys: StoredKey[]): Promise<void> {
    const active = keyIn(keys, 'active');
    if (!active || active.tokenLifeS < config.accessTtlS) throw new Error('no signing key can be used');
    const good = keys.filter((key) => key.state !== 'retired');
    for (const { kid, alg, publicKey } of good) {
      if (known.has(kid)) continue;
      const key = await importSPKI(publicKey, alg, { extractable: true });
      known.set(kid, { alg, key, jwk: { ...(await exportJWK(key)), kid, alg, use: 'sig' } });
    }
    const next = signer?.kid === active.kid ? signer : { kid: active.kid, alg: active.alg as Signer['alg'], privateKey: openKey(keyring, active) };
    // From here on without a pause, so that no request sees a half.
    if (signer !== null && signer !== next) log.info({ kid: next.kid, alg: next.alg }, 'another key signs now');
    signer = next;
    retired = new Set(keys.filter((key) => key.state === 'retired').map((key) => key.kid));
    for (const kid of known.keys()) if (!good.some((key) => key.kid === kid)) known.delete(kid);
    set = keySet(SHOWN.flatMap((state) => good.filter((key) => key.state === state)).map((key) => known.get(key.kid)!.jwk));
  }

  let running: Promise<void> = Promise.resolve();
  let coming: Promise<void> | null = null;

  /**
   * A reading that begins after the call. Those who ask while one is under way share the one after it, and fail with
   * the one under way: their patience is that of one statement.
   */
  function reread(): Promise<void> {
    coming ??= running.then(() => pause(triedAt + times.rereadMs - performance.now())).then(
      () => {
        coming = null;
        return (running = begin());
      },
      (error: unknown) => {
        coming = null;
        throw error;
      },
    );
    return coming;
  }

  function begin(): Promise<void> {
    const reading = read();
    reading.catch(() => (running = Promise.resolve()));
    return reading;
  }

  await ensureKeys(needs, config.jwtAlg);
  await read();

  let said: unknown = null;
  const poll = setInterval(() => {
    if (coming) return;
    reread().then(
      () => (said = null),
      (error: unknown) => {
        // A store that is down is told of by the requests that need it.
        const isFault = error instanceof WrongSecret || !(error instanceof ApiError);
        if (isFault && said === null) log.error({ err: error }, 'the signing keys cannot be used');
        said = error;
      },
    );
  }, times.pollMs);
  poll.unref();

  return {
    current() {
      // Whoever has heard nothing for so long may have missed that the key was replaced or revoked.
      if (performance.now() - readAt > times.trustMs) throw new ApiError('UNAVAILABLE', { retryAfter: 1 }, { cause: new Error('the signing keys could not be read') });
      return signer!;
    },
    async find(kid) {
      if (!known.has(kid) && KID.test(kid) && !retired.has(kid)) await reread();
      return known.get(kid) ?? null;
    },
    knows: (kid) => known.has(kid),
    published: () => ({ ...set, ageMs: performance.now() - readAt }),
    reread,
    close: () => clearInterval(poll),
  };
}

function keySet(keys: object[]): { body: string; etag: string } {
  const body = JSON.stringify({ keys });
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
}

/** Even a negative time is a turn of the event loop. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
