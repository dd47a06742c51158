import { Type } from '@sinclair/typebox';
import { v4 as uuid } from 'uuid';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { empty, json } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { subjectOf } from '../keyring.js';
import { record, whence } from '../store/audit.js';
import { confirmTotp as confirm, countFactors, deleteFactors, findPendingTotp, findTotp, putPendingTotp } from '../store/mfa.js';
import { announce, wake, type NewsNeeds } from './factor-news.js';
import { methodOf, spendCode } from './factor-use.js';
import { newTotpSecret, sealTotpSecret, totpStep } from './factors.js';
import { CODE_ERRORS, prove, PROOF_ERRORS, type ProofNeeds } from './proof.js';
import { issueRecoveryCodes, RecoveryCodes } from './recovery-codes.js';

type Needs = ProofNeeds & NewsNeeds & Pick<Deps, 'config'>;

/** How long an enrolment waits for its first code, in ms. */
const PENDING_MS = 3600 * 1000;

const Password = Type.String({ minLength: 1, examples: ['correct horse battery staple'] });
const Code = Type.String({ minLength: 1, maxLength: 64, examples: ['123456'] });

const Enrolment = Type.Object(
  {
    secret: Type.String({ description: 'To type into an app: base32.', examples: ['JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'] }),
    otpauthUrl: Type.String({ description: 'To show as a QR code.', examples: ['otpauth://totp/Portcullis:ada%40example.org?issuer=Portcullis&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&algorithm=SHA1&digits=6&period=30'] }),
  },
  { title: 'TotpEnrolment', description: 'What an authenticator app needs. It is shown this one time, and no factor until it is confirmed.' },
);

/** POST /api/auth/mfa/totp: begins to set up an authenticator app, in place of an enrolment that was never confirmed. */
export const enrolTotp = userEndpoint({
  tag: 'Second factors',
  summary: 'Begin to set up an authenticator app',
  description: 'Nothing changes until a code of the app confirms it. Wrong passwords count like those of logins.',
  body: Type.Object({ password: Password }),
  replies: { 200: Enrolment },
  errors: [...PROOF_ERRORS, 'MFA_ALREADY_ENROLLED'],
  handle: async (needs: Needs, call) => {
    const { config, keyring } = needs;
    const { userId } = call.principal;
    const action = 'mfa.enrolment_started';
    const { secret } = await prove(needs, call, { action, password: call.body.password, code: false }, async (tx, account) => {
      if (await findTotp(tx, userId)) return { secret: null };
      const [id, fresh] = [uuid(), newTotpSecret(config.mfaIssuer, account.email)];
      await putPendingTotp(tx, { id, userId, secret: sealTotpSecret(keyring, id, fresh.bytes) });
      await record(tx, { userId, subject: subjectOf(keyring, userId), action, status: 'success', ...whence(call), detail: await countFactors(tx, userId) });
      return { secret: fresh };
    });
    if (!secret) throw new ApiError('MFA_ALREADY_ENROLLED');
    return json(200, { secret: secret.text, otpauthUrl: secret.url });
  },
});

/** POST /api/auth/mfa/totp/confirm: the first code of the app makes it a factor. */
export const confirmTotp = userEndpoint({
  tag: 'Second factors',
  summary: 'Confirm the authenticator app by a code',
  description: 'Logins ask for a second factor from now on. Wrong codes count like wrong passwords.',
  body: Type.Object({ code: Code }),
  replies: { 200: RecoveryCodes },
  errors: [...CODE_ERRORS, 'MFA_NOT_ENROLLED'],
  handle: async (needs: Needs, call) => {
    const { keyring, clock } = needs;
    const { userId } = call.principal;
    const { recoveryCodes } = await prove(needs, call, { action: 'mfa.enabled', password: null, code: true }, async (tx) => {
      const pending = await findPendingTotp(tx, userId, PENDING_MS);
      if (!pending) return { recoveryCodes: null };
      const step = totpStep(keyring, pending, call.body.code, clock.now());
      if (step === null || !(await confirm(tx, pending.id, step))) return null;
      const codes = await issueRecoveryCodes(tx, needs, userId);
      await announce(tx, needs, call, userId, 'enabled');
      return { recoveryCodes: codes };
    });
    if (!recoveryCodes) throw new ApiError('MFA_NOT_ENROLLED');
    wake(needs);
    return json(200, { recoveryCodes });
  },
});

/** DELETE /api/auth/mfa/totp: the password alone signs in again. A recovery code will do for an app that is lost. */
export const removeTotp = userEndpoint({
  tag: 'Second factors',
  summary: 'Remove the authenticator app and the recovery codes',
  description: 'Takes a code of the app or a recovery code. Wrong passwords and codes count like those of logins.',
  body: Type.Object({ password: Password, code: Code }),
  replies: { 204: { body: null, description: 'The account has no second factor any more.' } },
  errors: [...PROOF_ERRORS, 'MFA_INVALID', 'MFA_NOT_ENROLLED'],
  handle: async (needs: Needs, call) => {
    const { userId } = call.principal;
    const { password, code } = call.body;
    const { removed } = await prove(needs, call, { action: 'mfa.disabled', password, code: true }, async (tx) => {
      const { factors } = await countFactors(tx, userId);
      if (factors === 0) return { removed: false };
      if (!(await spendCode(tx, needs, userId, methodOf(code), code))) return null;
      await deleteFactors(tx, userId);
      await announce(tx, needs, call, userId, 'disabled');
      return { removed: true };
    });
    if (!removed) throw new ApiError('MFA_NOT_ENROLLED');
    wake(needs);
    return empty();
  },
});
