import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { normaliseEmail } from '../email.js';
import { permanentDeletionAt } from '../grace.js';
import { empty } from '../http/call.js';
import { endpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { tell } from '../notify/notices.js';
import { record, whence } from '../store/audit.js';
import { findOwnerByEmail } from '../store/deletions.js';
import { issueCode, ttlMs } from './otp.js';
import { demandStores } from './unseen.js';

type SendNeeds = Pick<Deps, 'config' | 'keyring' | 'log' | 'mysql' | 'scripts' | 'clock' | 'notify'>;
export type RestoreRequestNeeds = SendNeeds & Pick<Deps, 'redis' | 'errands'>;

const body = Type.Object({ email: Type.String({ minLength: 1, maxLength: 254, examples: ['ada@example.org'] }) });

/** POST …/account/restore-request: sends a code to a deleted account. The reply is the same for any address, and does not wait for the answer to whose it is. */
export const restoreRequest = endpoint({
  tag: 'Account',
  summary: 'Ask for a code that restores a deleted account',
  description: 'The same reply at the same time for every address.',
  body,
  replies: { 204: null },
  errors: [],
  handle: async (needs: RestoreRequestNeeds, call) => {
    await demandStores(needs);
    const email = normaliseEmail(call.body.email);
    const from = whence(call);
    needs.errands.add(() => sendCode(needs, email, call.requestId, from));
    return empty();
  },
});

async function sendCode(needs: SendNeeds, email: string, requestId: string, from: ReturnType<typeof whence>): Promise<void> {
  const { config, keyring, log, mysql, clock, notify } = needs;
  const owner = await findOwnerByEmail(mysql, email);
  if (!owner?.deletedAt) return;
  const restorableUntil = permanentDeletionAt(config, owner.deletedAt).toISOString();
  const expiresAt = new Date(clock.now() + ttlMs(config)).toISOString();
  const otp = await issueCode(needs, owner, 'restore');
  if (otp === null) return;
  const subject = subjectOf(keyring, owner.id);
  await mysql.transaction(async (tx) => {
    // To the address as it is stored, never as it was typed.
    await tell(tx, needs, owner, [{ channel: 'EMAIL', to: owner.email }], 'account_restore_requested', { otp, expiresAt, restorableUntil });
    await record(tx, { userId: owner.id, subject, action: 'account.restore_requested', status: 'success', ...from });
  });
  notify.wake();
  log.info({ requestId, action: 'account.restore_requested', subject, ip: from.ip }, 'code for a restore issued');
}
