import t from 'tap';
import { addRecoveryCodes, addTotp } from '../support/accounts.js';
import { served } from '../support/attempts.js';
import { challenge } from '../support/factors.js';
import { startNodes, type Nodes } from '../support/nodes.js';
import { volley } from '../support/races.js';
import { brokenBuild } from '../support/racy.js';

// So many wrong codes would lock the account; here the code alone must decide.
const OPEN = { LOCKOUT_THRESHOLD: '100', LOGIN_DELAYS_S: '0' };
const MFA = 'dist/src/store/mfa.js';

/** Confirms 50 logins of an account at once with one code, spread over the nodes; gives how many came to what. */
async function fiftyUses({ nodes, account, needs }: Nodes, method: 'totp' | 'recovery_code'): Promise<Record<string, number>> {
  const owner = await account();
  const app = await addTotp(needs, owner.id);
  await addRecoveryCodes(needs, owner.id, ['aaaa-1111', 'bbbb-2222']);
  const tokens: string[] = [];
  for (let i = 0; i < 50; i += 1) tokens.push(await challenge(nodes[i % nodes.length]!.client(), owner));
  const code = method === 'totp' ? app() : 'aaaa-1111';
  return served(await volley(nodes, tokens.length, '/api/auth/mfa/verify-login', (i) => ({ mfaToken: tokens[i], method, code })));
}

t.test('fifty uses of one code over three nodes: one success', async (t) => {
  const nodes = await startNodes(t, 3, OPEN);
  for (const method of ['totp', 'recovery_code'] as const) {
    const counts = await fiftyUses(nodes, method);
    t.match(counts, { OK: 1, MFA_INVALID: Number }, method);
    t.equal(Object.keys(counts).length, 2);
  }
});

t.test('without the condition of its statement a code opens several sessions', async (t) => {
  const main = brokenBuild(t, MFA, ' AND (last_step IS NULL OR last_step < ?)', ' AND (? IS NOT NULL)', [MFA, 'code_hash = ? AND used_at IS NULL', 'code_hash = ?']);
  const nodes = await startNodes(t, 1, OPEN, main);
  for (const method of ['totp', 'recovery_code'] as const) {
    const { OK } = await fiftyUses(nodes, method);
    t.ok(OK! > 1, `${method}: ${OK} sessions`);
  }
});
