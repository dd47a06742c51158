import type { Deps } from '../deps.js';
import type { EventFields } from '../events/catalogue.js';
import { record } from '../store/audit.js';
import { forgetLocks } from '../store/gate-locks.js';
import { gather, type GatherOptions } from '../store/gather.js';
import type { Tx } from '../store/mysql.js';
import { rememberPlaces } from '../store/login-places.js';
import { appendEvents } from '../store/outbox.js';
import { insertSessions } from '../store/sessions.js';
import { holdAccounts, rememberSources, type LoginAccount } from '../store/login-accounts.js';
import { auditOf, type Attempt, type AttemptNeeds } from './attempt.js';
import type { Ticket } from './gate.js';
import type { Risk } from './risk.js';
import { sessionRow, type Draft } from './session.js';

/** A proven login whose session is about to be stored. */
export interface Opening {
  attempt: Attempt & { account: LoginAccount };
  ticket: Ticket;
  draft: Draft;
  deviceName: string | undefined;
  risks: Risk[];
  /** What else belongs into the transaction, before the account is held; a throw rolls everything back. */
  also?: (tx: Tx) => Promise<void>;
}

/** What became of it: `changed` when the account ended or its password changed since it was read. */
export type Opened = { kind: 'open' } | { kind: 'changed' } | { kind: 'refused'; error: unknown };

type Needs = Pick<AttemptNeeds, 'config' | 'keyring' | 'log' | 'mysql' | 'gate'> &
  Pick<Deps, 'clock' | 'events'> & {
    /** What to call the device of a User-Agent. */
    deviceLabel: (userAgent: string) => string | null;
  };

/** Openings in one transaction at most. */
const MOST = 32;

/**
 * Stores sessions. Logins that come while the hashing threads have work in any case share a transaction:
 * then a few milliseconds cost nobody anything, and a commit is dear.
 */
export function createOpener(needs: Needs, lingerMs: () => number, onBatch?: GatherOptions['onBatch']): (opening: Opening) => Promise<Opened> {
  const together = gather((openings: Opening[]) => openAll(needs, openings), { most: MOST, lingerMs, onBatch });
  return async (opening) => (opening.also ? (await openAll(needs, [opening]))[0]! : together(opening));
}

async function openAll(needs: Needs, openings: Opening[]): Promise<Opened[]> {
  const outcomes = await store(needs, openings);
  const opened = openings.filter((_, i) => outcomes[i]!.kind === 'open');
  if (opened.some(isUnusual)) needs.events.wake();
  await forget(needs, opened);
  return outcomes;
}

async function store(needs: Needs, openings: Opening[]): Promise<Opened[]> {
  // Outlives a repeated transaction: a ticket can be settled once.
  const settled = new Map<Opening, Promise<unknown>>();
  try {
    return await needs.mysql.transaction((tx) => open(tx, needs, openings, settled));
  } catch (error) {
    if (openings.length === 1) throw error;
    // One row that cannot be stored must not cost the others their login.
    return Promise.all(openings.map((one) => needs.mysql.transaction(async (tx) => (await open(tx, needs, [one], settled))[0]!).catch((cause: unknown): Opened => ({ kind: 'refused', error: cause }))));
  }
}

/** Forgets locks that were over, as the gate did. Not in the transaction: two logins would each wait for the row that the other holds. */
async function forget({ mysql, log }: Needs, opened: Opening[]): Promise<void> {
  const ids = opened.map(({ attempt }) => attempt.account).filter(({ lockMemory }) => lockMemory.step > 0).map(({ id }) => id);
  if (ids.length === 0) return;
  await forgetLocks(mysql, ids).catch((error: unknown) => log.warn({ err: error }, 'a lock that is over stays remembered until the next login'));
}

const isUnusual = ({ risks }: Opening): boolean => risks.length > 0;

async function open(tx: Tx, { config, keyring, gate, clock, deviceLabel }: Needs, openings: Opening[], settled: Map<Opening, Promise<unknown>>): Promise<Opened[]> {
  for (const { also } of openings) await also?.(tx);
  // A reset or deletion that commits meanwhile must not be survived by what its old password opened.
  const held = await holdAccounts(tx, openings.map(({ attempt }) => attempt.account));
  const outcomes = await Promise.all(
    openings.map(async (opening, i): Promise<Opened> => {
      if (!held[i]) return { kind: 'changed' };
      const settling = settled.get(opening) ?? gate.succeed(opening.ticket);
      settled.set(opening, settling);
      return settling.then((): Opened => ({ kind: 'open' }), (error: unknown): Opened => ({ kind: 'refused', error }));
    }),
  );
  // After the gate has spoken: a refused login must leave no session and no familiar source.
  const opened = openings.filter((_, i) => outcomes[i]!.kind === 'open');
  await insertSessions(tx, opened.map(({ draft, attempt, deviceName }) => sessionRow(config, draft, attempt.call, deviceName?.trim() || deviceLabel(attempt.call.userAgent))));
  await record(tx, ...opened.map((opening) => ({ ...auditOf(keyring, opening.attempt), sessionId: opening.draft.refresh.sessionId, status: 'success' as const, ...factsOf(opening) })));
  await rememberSources(tx, opened.filter(({ attempt }) => !attempt.account.remembered).map(({ attempt }) => ({ id: attempt.account.id, source: attempt.source })));
  await rememberPlaces(tx, opened.flatMap(({ attempt: { account, call } }) => (call.place ? [{ id: account.id, place: call.place }] : [])));
  await appendEvents(tx, 'identity.user.risk_detected', opened.filter(isUnusual).map(riskEvent), new Date(clock.now()));
  return outcomes;
}

function factsOf({ attempt: { detail }, risks }: Opening): { detail?: Record<string, unknown> } {
  const facts = { ...detail, ...(risks.length > 0 ? { risks } : {}) };
  return Object.keys(facts).length > 0 ? { detail: facts } : {};
}

const riskEvent = ({ attempt: { account, call }, draft, risks }: Opening): EventFields<'identity.user.risk_detected'> => ({ userId: account.id, sessionId: draft.refresh.sessionId, risks, ipAddress: call.ip, country: call.place?.country ?? null });
