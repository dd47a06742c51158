import type { Deps } from '../deps.js';
import type { Tx } from '../store/mysql.js';
import { deleteRetired, insertKey, listKeys, lockKeys, retireNow, retireSpent, startSigning, stopSigning, want, type NewKey, type StoredKey } from '../store/signing-keys.js';
import { makeKey, openKey } from './key-pair.js';
import { KEY_TIMES, type KeyTimes } from './key-times.js';

type Needs = Pick<Deps, 'mysql' | 'keyring'> & { config: Pick<Deps['config'], 'accessTtlS' | 'jwtAlg' | 'jwtRotateDays'> };

const DAY_MS = 24 * 3600 * 1000;

/** Days that a retired key is remembered. */
const REMEMBERED_DAYS = 90;

/** What became of the wish for another signing key. */
export type Rotation =
  | { kind: 'rotated'; from: string; to: string }
  /** The next key has not been shown for long enough; a node lets it take over in `inMs`. */
  | { kind: 'waiting'; to: string; inMs: number }
  /** Another rotation came first. */
  | { kind: 'lost' };

export const keyIn = (keys: StoredKey[], state: 'next' | 'active'): StoredKey | undefined => keys.find((key) => key.state === state);

/**
 * Sees to it that one key signs and one comes next, and gives all keys; the next one may be gone again, when a
 * rotation has just used it up. It has the algorithm `chosen`; where
 * another algorithm signs, it is wanted: shown first like every key, then used. Without a choice nothing changes.
 */
export async function ensureKeys(needs: Needs, chosen?: string): Promise<StoredKey[]> {
  // Several steps may be missing; nodes that start with different algorithms at once must not go on for ever.
  for (let step = 0; ; step += 1) {
    const keys = await listKeys(needs.mysql);
    if (step === 5 || !(await mend(needs, keys, chosen))) return keys;
  }
}

/** Does what is missing first; false when nothing is. */
async function mend(needs: Needs, keys: StoredKey[], chosen: string | undefined): Promise<boolean> {
  const { mysql, config } = needs;
  const [active, next] = [keyIn(keys, 'active'), keyIn(keys, 'next')];
  const alg = chosen ?? next?.alg ?? active?.alg ?? config.jwtAlg;
  const wanted = active !== undefined && active.alg !== alg;
  if (!active && next) await mysql.transaction((tx) => startSigning(tx, next.kid, 0));
  else if (!active) await addKey(needs, { alg, state: 'active', wanted: false });
  else if (!next) await addKey(needs, { alg, state: 'next', wanted });
  else if (next.alg !== alg) await replaceNext(needs, next, alg, wanted);
  else if (wanted && !next.wanted) await want(mysql, next.kid);
  else return false;
  return true;
}

async function addKey({ mysql, keyring, config }: Needs, { alg, ...place }: { alg: string; state: 'next' | 'active'; wanted: boolean }): Promise<void> {
  await insertKey(mysql, { ...(await makeKey(keyring, alg)), ...place, tokenLifeS: config.accessTtlS });
}

async function replaceNext({ mysql, keyring, config }: Needs, next: StoredKey, alg: string, wanted: boolean): Promise<void> {
  const made = await makeKey(keyring, alg);
  await mysql.transaction(async (tx) => {
    if (await retireNow(tx, next.kid, 'next')) await insertKey(tx, { ...made, state: 'next', wanted, tokenLifeS: config.accessTtlS });
  });
}

/** Lets the next key take over, now if it has been shown for long enough, else as soon as it has. */
export async function rotate(needs: Needs, times: KeyTimes = KEY_TIMES): Promise<Rotation> {
  const rotation = await takeOver(needs, await ensureKeys(needs), times);
  if (rotation.kind === 'waiting') await want(needs.mysql, rotation.to);
  return rotation;
}

class TooEarly extends Error {}

async function takeOver(needs: Needs, keys: StoredKey[], { leadMs }: KeyTimes): Promise<Rotation> {
  const [active, next] = [keyIn(keys, 'active'), keyIn(keys, 'next')];
  if (!active || !next) return { kind: 'lost' };
  // What this node cannot open would silence the others too, if it were wrong.
  openKey(needs.keyring, next);
  try {
    const won = await needs.mysql.transaction(async (tx) => {
      if (!(await stopSigning(tx, active.kid))) return false;
      if (!(await startSigning(tx, next.kid, leadMs))) throw new TooEarly();
      return true;
    });
    if (!won) return { kind: 'lost' };
  } catch (error) {
    if (!(error instanceof TooEarly)) throw error;
    return { kind: 'waiting', to: next.kid, inMs: Math.max(0, leadMs - next.shownMs) };
  }
  await addKey(needs, { alg: next.alg, state: 'next', wanted: false });
  return { kind: 'rotated', from: active.kid, to: next.kid };
}

/** What is due now, in the life of the keys. Safe to repeat and to do on several nodes: every step is conditional. */
export async function upkeep(needs: Needs & Pick<Deps, 'log'>, times: KeyTimes = KEY_TIMES): Promise<void> {
  const { mysql, config, log } = needs;
  // The algorithm is chosen when a node starts. Here it stays, or two nodes that disagree would never rest.
  const keys = await ensureKeys(needs);
  if (isDue(keys, config.jwtRotateDays, times)) {
    const rotation = await takeOver(needs, keys, times);
    if (rotation.kind === 'rotated') log.info({ kid: rotation.to, former: rotation.from }, 'the next signing key has taken over');
  }
  const retired = await retireSpent(mysql, times.holdMs);
  if (retired > 0) log.info({ retired }, 'signing keys whose tokens have ended are retired');
  await deleteRetired(mysql, REMEMBERED_DAYS);
}

function isDue(keys: StoredKey[], rotateDays: number, { leadMs }: KeyTimes): boolean {
  const [active, next] = [keyIn(keys, 'active'), keyIn(keys, 'next')];
  if (!active || !next || next.shownMs < leadMs) return false;
  return next.wanted || (rotateDays > 0 && active.usedMs! >= rotateDays * DAY_MS);
}

/** What became of keys that are to be trusted no more. */
export interface Revocation {
  revoked: string[];
  /** The key that signs now, and whether it does so before it has been shown for long enough. */
  signing: string;
  early: boolean;
}

/**
 * Retires a key at once: its tokens are invalid from now on. Where it was the one that signs, the next one takes over,
 * however long it has been shown.
 * @param target a kid, or `all`; without one the key that signs now
 */
export async function revoke(needs: Needs, target?: string, { leadMs }: KeyTimes = KEY_TIMES): Promise<Revocation> {
  const { mysql, keyring, config } = needs;
  const before = await ensureKeys(needs);
  const active = keyIn(before, 'active')!;
  const doomed = target ?? active.kid;
  // Made before rows are locked; used where no next key is left.
  const spare = await makeKey(keyring, (keyIn(before, 'next') ?? active).alg);
  const revoked = await mysql.transaction(async (tx) => {
    const keys = (await lockKeys(tx)).filter((key) => key.state !== 'retired' && (doomed === 'all' || key.kid === doomed));
    for (const key of keys) await retireNow(tx, key.kid, key.state);
    if (keys.some((key) => key.state === 'active')) await succeed(tx, needs, { ...spare, tokenLifeS: config.accessTtlS });
    return keys.map((key) => key.kid);
  });
  const signing = keyIn(await ensureKeys(needs, spare.alg), 'active')!;
  return { revoked, signing: signing.kid, early: signing.shownMs < leadMs };
}

async function succeed(tx: Tx, { keyring }: Needs, spare: Omit<NewKey, 'state' | 'wanted'>): Promise<void> {
  const next = keyIn(await listKeys(tx), 'next');
  if (!next) await insertKey(tx, { ...spare, state: 'active', wanted: false });
  else if (openKey(keyring, next)) await startSigning(tx, next.kid, 0);
}
