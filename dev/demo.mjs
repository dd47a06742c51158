/**
 * The account a newcomer logs in with. Its password is made once per folder, so that
 * no two machines share one, and printed.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { run } from './child.mjs';
import { Refusal } from './shutdown.mjs';

/** @typedef {{email: string, password: string}} Account */

/** @param {string} file @returns {Account} */
function keepAccount(file) {
  try {
    const { email, password } = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof email === 'string' && typeof password === 'string') return { email, password };
  } catch {
    // not made yet
  }
  const account = { email: 'demo@example.com', password: `demo-${randomBytes(9).toString('base64url')}` };
  writeFileSync(file, `${JSON.stringify(account, null, 2)}\n`, { mode: 0o600 });
  return account;
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
  const account = keepAccount(file);
  const args = [cli, 'user', 'create', '--email', account.email, '--password-stdin', '--verified'];
  const { code, output } = await run(process.execPath, args, { cwd, env, input: account.password });
  // The second run finds it there: that is what it should find.
  if (code !== 0 && !/exist|duplicate|taken/i.test(output)) throw new Refusal(`The demo account could not be created:\n${output.trim()}`);
  return { ...account, isNew: code === 0 };
}
