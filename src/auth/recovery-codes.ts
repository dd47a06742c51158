import { Type } from '@sinclair/typebox';
import type { Deps } from '../deps.js';
import { ApiError } from '../errors.js';
import { json } from '../http/call.js';
import { userEndpoint } from '../http/endpoint.js';
import { findTotp, putRecoveryCodes } from '../store/mfa.js';
import type { Tx } from '../store/mysql.js';
import { announce, wake, type NewsNeeds } from './factor-news.js';
import { newRecoveryCode, recoveryCodeHashes } from './factors.js';
import { prove, PROOF_ERRORS, type ProofNeeds } from './proof.js';

/** Codes that an account has at a time. */
const CODES = 10;

export const RecoveryCodes = Type.Object(
  { recoveryCodes: Type.Array(Type.String({ examples: ['7k3m-x0pd-94cz-hn2v'] }), { minItems: CODES, maxItems: CODES }) },
  { title: 'RecoveryCodes', description: 'Each stands in for the app once. They are shown this one time.' },
);

/** Gives an account new recovery codes in place of those it had; only their hashes are kept. */
export async function issueRecoveryCodes(tx: Tx, { keyring }: Pick<Deps, 'keyring'>, userId: string): Promise<string[]> {
  const codes = Array.from({ length: CODES }, newRecoveryCode);
  await putRecoveryCodes(tx, userId, codes.map((code) => recoveryCodeHashes(keyring, userId, code)[0]!));
  return codes;
}

/** POST /api/auth/mfa/recovery-codes: new codes for an owner who lost or used the old ones. */
export const renewRecoveryCodes = userEndpoint({
  tag: 'Second factors',
  summary: 'Replace the recovery codes',
  description: 'The former codes are worthless from then on. Wrong passwords count like those of logins.',
  body: Type.Object({ password: Type.String({ minLength: 1, examples: ['correct horse battery staple'] }) }),
  replies: { 200: RecoveryCodes },
  errors: [...PROOF_ERRORS, 'MFA_NOT_ENROLLED'],
  handle: async (needs: ProofNeeds & NewsNeeds, call) => {
    const { userId } = call.principal;
    const { recoveryCodes } = await prove(needs, call, { action: 'mfa.recovery_codes_replaced', password: call.body.password, code: false }, async (tx) => {
      if (!(await findTotp(tx, userId))) return { recoveryCodes: null };
      const codes = await issueRecoveryCodes(tx, needs, userId);
      await announce(tx, needs, call, userId, 'recoveryCodesReplaced');
      return { recoveryCodes: codes };
    });
    if (!recoveryCodes) throw new ApiError('MFA_NOT_ENROLLED');
    wake(needs);
    return json(200, { recoveryCodes });
  },
});
