/**
 * The account a newcomer logs in with. Its password is made once per folder, so that
 * no two machines share one, and printed.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { run } from './child.mjs';
import { Refusal } from './shutdown.mjs';

/** @typedef {{email: string, password: string | null}} Account password: null when somebody else made the account */

/** @param {string} file @returns {{email: string, password: string} | null} */
function readAccount(file) {
  try {
    const { email, password } = JSON.parse(readFileSync(file, 'utf8'));
    return typeof email === 'string' && typeof password === 'string' ? { email, password } : null;
  } catch {
    return null;
  }
}

/**
 * @param {object} plan
 * @param {string} plan.file where its password is kept
 * @param {string} plan.cli
 * @param {NodeJS.ProcessEnv} plan.env
 * @param {string} plan.cwd
 * @returns {Promise<Account & {isNew: boolean}>}
 */
export async function createDemo({ file, cli, env, cwd }) {
  const known = readAccount(file);
  const account = known ?? { email: 'demo@example.com', password: `demo-${randomBytes(9).toString('base64url')}` };
  // Kept before it is used: a run that ends in between must not lose it.
  if (!known) writeFileSync(file, `${JSON.stringify(account, null, 2)}\n`, { mode: 0o600 });
  const args = [cli, 'user', 'create', '--email', account.email, '--password-stdin', '--verified'];
  const { code, output } = await run(process.execPath, args, { cwd, env, input: account.password });
  if (code === 0) return { ...account, isNew: true };
  // The second run finds it there: that is what it should find.
  if (!/exists already|already exists/i.test(output)) throw new Refusal(`The demo account could not be created:\n${output.trim()}`);
  if (known) return { ...account, isNew: false };
  // In a database of the person's own (MYSQL_URL) another folder made it.
  rmSync(file);
  return { email: account.email, password: null, isNew: false };
}
