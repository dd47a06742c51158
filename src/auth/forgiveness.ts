import type { Deps } from '../deps.js';
import { listSources } from '../store/accounts.js';
import type { Gate } from './gate.js';
import { identityOf, sourceName } from './identity.js';

/** Has the gate forget every failure, delay and lock of an account, those of its familiar sources too. */
export async function forgetFailures({ gate, keyring, mysql }: Pick<Deps, 'keyring' | 'mysql'> & { gate: Pick<Gate, 'clear'> }, { id, email }: { id: string; email: string }): Promise<void> {
  const identity = identityOf(keyring, email);
  await gate.clear({ identity, source: null });
  for (const source of await listSources(mysql, id)) await gate.clear({ identity, source: sourceName(source) });
}
