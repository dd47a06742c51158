import type { Config } from '../config/settings.js';
import type { Keyring, Purpose } from '../keyring.js';
import type { Mysql } from '../store/mysql.js';
import { countOldRecoveryCodes, countSealed, noteSettled, noteSettling, replaceSealed, SEALED, sealedAfter, settledAt, type SealedColumn } from '../store/sealed.js';

/**
 * What a change of SECRET_KEY means to each use of it, beside what is resealed: null where nobody notices. The type
 * keeps the list complete.
 */
export const CHANGES: Readonly<Record<Purpose, string | null>> = {
  'signing-key': null,
  'totp-secret': null,
  'notification': null,
  'refresh': 'refresh tokens change over with the next refresh of their session',
  'successor': null,
  'csrf': 'forms of open pages change over with the next refresh of their session',
  'recovery-code': 'recovery codes need the former secret until they are made anew',
  'webhook': 'receivers of SMS and WhatsApp need the new signing key; both signatures are sent meanwhile',
  'subject': 'audit and log lines name a person by another keyed hash than before',
  'identity': 'failures of the login gate that only Redis counts are forgotten; locks stand',
  'source': 'familiar networks and devices are learnt anew',
  'limit': 'counts of the limits start anew',
  'otp': 'one-time codes that are on their way are invalid',
  'secret-name': null,
  'oauth-flow': null,
  'cursor': 'pages of the list of security events that are being read begin anew',
};

export interface Resealed {
  /** Values looked at, sealed anew, and opened by no secret that is set. */
  checked: number;
  resealed: number;
  lost: number;
}

/** What the operator is told; times in ISO 8601. */
export interface Outcome extends Resealed {
  /** Until when sessions may hold a refresh token of the former secret; null when none was set. */
  sessionsUntil: string | null;
  /** Accounts whose recovery codes stop working with the former secret. */
  recoveryCodeAccounts: number;
  /** Whether SECRET_KEY_PREVIOUS can be dropped, recovery codes aside. */
  droppable: boolean;
}

type Needs = { mysql: Mysql; keyring: Keyring; config: Pick<Config, 'secretKeyPrevious' | 'sessionIdleDays'> };

/**
 * Seals anew what the former secret has sealed, in small batches. Safe to repeat, and while the service runs: a value
 * that changes meanwhile is left as it is. To be done once no node uses the former secret as its own.
 */
export async function reseal(needs: Needs, progress: (done: number, total: number) => void): Promise<Outcome> {
  const { mysql, keyring, config } = needs;
  const total = (await Promise.all(SEALED.map((column) => countSealed(mysql, column)))).reduce((sum, n) => sum + n, 0);
  const all: Resealed = { checked: 0, resealed: 0, lost: 0 };
  progress(0, total);
  for (const column of SEALED) {
    for await (const batch of resealColumn(needs, column)) {
      for (const name of ['checked', 'resealed', 'lost'] as const) all[name] += batch[name];
      progress(all.checked, Math.max(all.checked, total));
    }
  }
  if (config.secretKeyPrevious === null) return { ...all, sessionsUntil: null, recoveryCodeAccounts: 0, droppable: all.lost === 0 };
  await noteSettled(mysql, secretName(keyring));
  const settled = (await settledAt(mysql, secretName(keyring), config.sessionIdleDays))!;
  const recoveryCodeAccounts = await countOldRecoveryCodes(mysql, settled.at);
  return { ...all, sessionsUntil: settled.until.toISOString(), recoveryCodeAccounts, droppable: settled.isOver && all.lost === 0 };
}

/** Tells the present secret from others, and nothing about it. */
const secretName = (keyring: Keyring): Buffer => keyring.mac('secret-name').subarray(0, 8);

async function* resealColumn({ mysql, keyring }: Needs, column: SealedColumn): AsyncGenerator<Resealed> {
  for (let after = ''; ; ) {
    const found = await sealedAfter(mysql, column, after);
    if (found.length === 0) return;
    const renewed = found.map(({ id, sealed }) => ({ id, sealed, to: keyring.reseal(column.purpose, sealed, id) }));
    const former = renewed.filter(({ sealed, to }) => to !== null && to !== sealed);
    if (former.length > 0) {
      await mysql.transaction(async (tx) => {
        await noteSettling(tx, secretName(keyring));
        for (const { id, sealed, to } of former) await replaceSealed(tx, column, id, sealed, to!);
      });
    }
    yield { checked: found.length, resealed: former.length, lost: renewed.filter(({ to }) => to === null).length };
    after = found.at(-1)!.id;
  }
}
