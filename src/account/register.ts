import { Type } from '@sinclair/typebox';
import { v4 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import { isEmail, normaliseEmail } from '../email.js';
import { ApiError } from '../errors.js';
import { permanentDeletionAt } from '../grace.js';
import { json, type Call } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { tell } from '../notify/notices.js';
import { newPassword } from '../passwords/length.js';
import { insertSelfMade, type SelfMadeAccount } from '../store/accounts.js';
import { record, whence, type AuditEntry } from '../store/audit.js';
import { findOwner, findOwnerByEmail, type Owner } from '../store/deletions.js';
import { isDuplicate, type Tx } from '../store/mysql.js';
import { appendEvent } from '../store/outbox.js';
import { holdActive } from '../store/users.js';
import { mailToken } from './mailed-token.js';
import { demandStores, doUnseen, type UnseenNeeds } from './unseen.js';

type SignUpNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'clock' | 'events' | 'notify'>;
export type RegisterNeeds = SignUpNeeds & UnseenNeeds & Pick<Deps, 'hashing' | 'passwordRules'>;

const name = (example: string) => Type.Optional(Type.String({ maxLength: 255, examples: [example] }));
const body = Type.Object({ email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.org'] }), password: newPassword, givenName: name('Ada'), familyName: name('Lovelace') });

/** POST /api/auth/register: opens an account, or writes to the owner of the one there is. Reply and time are the same. */
export const register = endpoint({
  tag: 'Registration',
  summary: 'Open an account',
  description: 'The same reply at the same time for every address. A new address is mailed a token that proves it; the owner of a known one hears that somebody tried. The account can sign in a moment later, proven or not.',
  body,
  replies: { 202: Type.Object({ ok: Type.Literal(true) }, { description: 'Taken on.' }) },
  errors: ['PASSWORD_TOO_WEAK', 'OVERLOADED'],
  handle: async (needs: RegisterNeeds, call) => {
    const { password, givenName, familyName } = call.body;
    const email = normaliseEmail(call.body.email);
    if (!isEmail(email)) throw new ApiError('INVALID_REQUEST', { errors: [{ path: '/email', message: 'must be an e-mail address' }] });
    needs.hashing.admit(call);
    await demandStores(needs);
    await needs.passwordRules.demand(password, email, '/password');
    // For known addresses too, whose owners never see it: the hash is what takes the time.
    const passwordHash = await needs.hashing.hash(password, call);
    const wanted = { id: uuid(), email, passwordHash, givenName: givenName || null, familyName: familyName || null };
    await doUnseen(needs, 'register-address', email, () => signUp(needs, wanted, call));
    return json(202, { ok: true as const });
  },
});

type From = Pick<Call, 'requestId' | 'ip' | 'place' | 'principal'>;

/** Another sign-up for the address that comes between look and insert is seen by the next look. */
const TRIES = 3;

async function signUp(needs: SignUpNeeds, wanted: SelfMadeAccount, from: From): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const owner = await findOwnerByEmail(needs.mysql, wanted.email);
    if (owner) return meetAgain(needs, owner, from);
    try {
      return await open(needs, wanted, from);
    } catch (error) {
      if (!isDuplicate(error) || tries === TRIES) throw error;
    }
  }
}

async function open(needs: SignUpNeeds, wanted: SelfMadeAccount, from: From): Promise<void> {
  const { mysql, clock, events, notify } = needs;
  const { id, email } = wanted;
  await mysql.transaction(async (tx) => {
    await insertSelfMade(tx, wanted);
    await mailToken(tx, needs, (await findOwner(tx, id))!, 'verify_email');
    await record(tx, entry(needs, id, 'account.registered', from));
    await appendEvent(tx, 'identity.user.registered', { userId: id, email }, new Date(clock.now()));
  });
  events.wake();
  notify.wake();
  logDone(needs, id, 'account.registered', from, 'account opened');
}

/** The address has an account, whose password stays: its owner hears what can be done about it. */
async function meetAgain(needs: SignUpNeeds, owner: Owner, from: From): Promise<void> {
  const isTold = await needs.mysql.transaction(async (tx) => {
    if (!(await tellOwner(tx, needs, owner))) return false;
    await record(tx, entry(needs, owner.id, 'account.registration_repeated', from));
    return true;
  });
  if (!isTold) return;
  needs.notify.wake();
  logDone(needs, owner.id, 'account.registration_repeated', from, 'sign-up for a known address');
}

/** Queues the message that fits the account; false when there is none: it was disabled, or is beyond restoring. */
async function tellOwner(tx: Tx, needs: SignUpNeeds, owner: Owner): Promise<boolean> {
  const { config, clock } = needs;
  const mail = [{ channel: 'EMAIL' as const, to: owner.email }];
  if (owner.status !== 'active') return false;
  if (owner.deletedAt) {
    const until = permanentDeletionAt(config, owner.deletedAt);
    if (until.getTime() <= clock.now()) return false;
    await tell(tx, needs, owner, mail, 'account_restorable', { restorableUntil: until.toISOString() });
    return true;
  }
  const held = await holdActive(tx, owner.id);
  if (!held) return false;
  if (held.emailVerified) await tell(tx, needs, owner, mail, 'account_exists', {});
  else await mailToken(tx, needs, owner, 'verify_email');
  return true;
}

const entry = ({ keyring }: SignUpNeeds, userId: string, action: AuditEntry['action'], from: From): AuditEntry => ({ userId, subject: subjectOf(keyring, userId), action, status: 'success', ...whence(from) });

function logDone({ log, keyring }: SignUpNeeds, userId: string, action: AuditEntry['action'], { requestId, ip }: From, what: string): void {
  log.info({ requestId, action, subject: subjectOf(keyring, userId), ip }, what);
}
