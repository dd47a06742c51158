import type { Deps } from '../../deps.js';
import { isEmail, normaliseEmail } from '../../email.js';
import type { Call } from '../../http/call.js';
import { subjectOf } from '../../keyring.js';
import { tell } from '../../notify/notices.js';
import { record, whence } from '../../store/audit.js';
import { findOwner } from '../../store/deletions.js';
import { isDuplicate, type Tx } from '../../store/mysql.js';
import { insertFederatedUser, insertIdentity, lockLinkable, userOfIdentity, type Identity, type Linkable, type Names } from '../../store/oauth-identities.js';
import { appendEvent } from '../../store/outbox.js';
import { demandUsable } from '../sign-in.js';
import type { Claims, Person } from './provider.js';
import { Refused, refusalOf } from './refusal.js';

type Needs = Pick<Deps, 'config' | 'keyring' | 'mysql' | 'clock' | 'events' | 'notify'>;

/** Others may take the address or the identity between look and insert: each time, the next look sees it. */
const TRIES = 5;

/**
 * The account of a person: the one that their identity belongs to, whatever their address is now; else the one of
 * their verified address, linked from now on; else a new one.
 * @throws Refused email_unverified, account_exists_unverified, account_linked_otherwise, account_deleted, account_inactive
 */
export async function accountOfPerson(needs: Needs, call: Call, provider: string, person: Person): Promise<string> {
  const identity: Identity = { issuer: person.issuer, subject: person.subject, provider };
  const known = await userOfIdentity(needs.mysql, identity);
  if (known !== null) return known;
  const claims = await person.claims();
  const email = verifiedEmail(claims);
  if (email === null) throw new Refused('email_unverified');
  for (let tries = 1; ; tries += 1) {
    try {
      return await admit(needs, call, identity, email, namesOf(claims));
    } catch (error) {
      if (!isDuplicate(error) || tries === TRIES) throw error;
    }
    const meanwhile = await userOfIdentity(needs.mysql, identity);
    if (meanwhile !== null) return meanwhile;
  }
}

/** Links the identity to the account of its address, or creates that account; all of it in one transaction. */
async function admit(needs: Needs, call: Call, identity: Identity, email: string, names: Names): Promise<string> {
  const { mysql, keyring, config, events, notify } = needs;
  const found = await mysql.transaction(async (tx) => {
    const account = await lockLinkable(tx, email, identity.issuer);
    // Another sign-in of the same person was quicker.
    if (account?.subject === identity.subject) return { id: account.id };
    const obstacle = account && obstacleOf(account, config);
    if (account && obstacle) return { account, obstacle };
    const id = account ? account.id : await insertFederatedUser(tx, email);
    await insertIdentity(tx, identity, id, names);
    await record(tx, { userId: id, subject: subjectOf(keyring, id), action: account ? 'account.provider_linked' : 'account.created', status: 'success', ...whence(call), detail: { provider: identity.provider } });
    await (account ? tellOwner(tx, needs, id, identity) : announce(tx, needs, id, email, identity));
    return { id };
  });
  if (found.obstacle) {
    const { account, obstacle } = found;
    await record(mysql, { userId: account.id, subject: subjectOf(keyring, account.id), action: 'oauth', status: 'failure', ...whence(call), detail: { outcome: obstacle.code, provider: identity.provider } });
    throw obstacle;
  }
  events.wake();
  notify.wake();
  return found.id;
}

/** Why an account cannot be linked; null when it can. */
function obstacleOf(account: Linkable, config: Deps['config']): Refused | null {
  // First of all: whoever registered somebody else's address must not learn or get anything by its owner's sign-in.
  if (!account.emailVerified) return new Refused('account_exists_unverified');
  // The provider may have given the address to somebody else since: its former holder's account stays theirs.
  if (account.subject !== null) return new Refused('account_linked_otherwise');
  try {
    demandUsable(account, config);
    return null;
  } catch (error) {
    return refusalOf(error);
  }
}

async function announce(tx: Tx, { clock }: Needs, userId: string, email: string, { provider }: Identity): Promise<void> {
  await appendEvent(tx, 'identity.user.registered', { userId, email, provider }, new Date(clock.now()));
}

async function tellOwner(tx: Tx, needs: Needs, userId: string, { provider }: Identity): Promise<void> {
  const owner = await findOwner(tx, userId);
  if (owner) await tell(tx, needs, owner, [{ channel: 'EMAIL', to: owner.email }], 'account_provider_linked', { provider });
}

/** The address that the provider has verified to be the person's; some providers write true as a text. */
function verifiedEmail({ email, email_verified: verified }: Claims): string | null {
  if (typeof email !== 'string' || (verified !== true && verified !== 'true')) return null;
  const address = normaliseEmail(email);
  return isEmail(address) ? address : null;
}

/** Characters of a name column. */
const NAME_MAX = 255;

function namesOf({ given_name: given, family_name: family }: Claims): Names {
  return { givenName: nameOf(given), familyName: nameOf(family) };
}

function nameOf(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const name = Array.from(value.toWellFormed().replace(/\p{Cc}+/gu, ' ').trim()).slice(0, NAME_MAX).join('');
  return name === '' ? null : name;
}
