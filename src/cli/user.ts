import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { identityOf } from '../auth/identity.js';
import { isEmail, normaliseEmail } from '../email.js';
import { subjectOf } from '../keyring.js';
import { clearLocks, insertAccounts, listSources, setStatus } from '../store/accounts.js';
import { record } from '../store/audit.js';
import { sourceName } from '../auth/identity.js';
import { isPassword, isPhone, PASSWORD_RULE, PHONE_RULE } from './account-line.js';
import { importCommand } from './user-import.js';
import { Failure, report } from './outcome.js';
import { withToolbox, type Toolbox } from './toolbox.js';

interface CreateOptions {
  email: string;
  passwordStdin: boolean;
  verified: boolean;
  phone?: string;
  phoneVerified: boolean;
}

export function userCommand(): Command {
  const user = new Command('user').description('create, import and look after accounts');
  user
    .command('create')
    .description('create one account; its password is read from standard input')
    .requiredOption('--email <address>', 'e-mail address, the login name')
    .requiredOption('--password-stdin', 'read the password from standard input (one trailing line break is dropped)')
    .option('--verified', 'the address is known to be the owner’s', false)
    .option('--phone <number>', PHONE_RULE)
    .option('--phone-verified', 'the number is known to be the owner’s', false)
    .action((options: CreateOptions, command: Command) => withToolbox((tools) => create(tools, options, command)));
  user.addCommand(importCommand());
  emailCommand(user, 'disable', 'refuse logins, refreshes and access tokens of an account', (tools, email) => changeStatus(tools, email, 'disabled'));
  emailCommand(user, 'enable', 'let a disabled account in again', (tools, email) => changeStatus(tools, email, 'active'));
  emailCommand(user, 'unlock', 'end the lockout of an account and forget its failures', unlock);
  return user;
}

async function create({ mysql, hashing }: Toolbox, options: CreateOptions, command: Command): Promise<void> {
  const email = normaliseEmail(options.email);
  if (!isEmail(email)) throw new Failure(`not an e-mail address: ${options.email}`);
  if (options.phone !== undefined && !isPhone(options.phone)) throw new Failure(`not a phone number: ${options.phone} (${PHONE_RULE})`);
  const password = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (!isPassword(password)) throw new Failure(PASSWORD_RULE);
  const passwordHash = await hashing().hash(password, { network: 'cli' });
  const phone = options.phone ?? null;
  const [id] = await insertAccounts(mysql(), [{ email, passwordHash, emailVerified: options.verified, phone, phoneVerified: phone !== null && options.phoneVerified, status: 'active', roles: [], tenants: [], profiles: [] }]);
  if (id === null || id === undefined) throw new Failure(`an account with the address ${email} exists already`);
  report(command, `created ${email} (${id})`, { id, email });
}

function emailCommand(parent: Command, name: 'disable' | 'enable' | 'unlock', description: string, work: (tools: Toolbox, email: string) => Promise<string | null>): void {
  parent
    .command(name)
    .description(description)
    .requiredOption('--email <address>', 'e-mail address of the account')
    .action((options: { email: string }, command: Command) =>
      withToolbox(async (tools) => {
        const email = normaliseEmail(options.email);
        const id = await work(tools, email);
        if (id === null) throw new Failure(`no account has the address ${email}`);
        report(command, `${name}d ${email}`.replace('unlockd', 'unlocked'), { id, email });
      }),
    );
}

function changeStatus({ mysql, keyring }: Toolbox, email: string, status: 'active' | 'disabled'): Promise<string | null> {
  return mysql().transaction(async (tx) => {
    const id = await setStatus(tx, email, status);
    if (id !== null) await record(tx, { userId: id, subject: subjectOf(keyring, id), action: status === 'active' ? 'account.enabled' : 'account.disabled', status: 'success', ip: null });
    return id;
  });
}

async function unlock({ mysql, keyring, gate }: Toolbox, email: string): Promise<string | null> {
  const id = await mysql().transaction(async (tx) => {
    const found = await clearLocks(tx, email);
    if (found !== null) await record(tx, { userId: found, subject: subjectOf(keyring, found), action: 'account.unlocked', status: 'success', ip: null });
    return found;
  });
  if (id === null) return null;
  const identity = identityOf(keyring, email);
  const opened = await gate();
  await opened.clear({ identity, source: null });
  for (const source of await listSources(mysql(), id)) await opened.clear({ identity, source: sourceName(source) });
  return id;
}
