import { isUtf8 } from 'node:buffer';
import { buffer } from 'node:stream/consumers';
import { Command, InvalidArgumentError } from 'commander';
import { forgetFailures } from '../auth/forgiveness.js';
import { isEmail, normaliseEmail } from '../email.js';
import { subjectOf } from '../keyring.js';
import { isPassword, PASSWORD_RULE } from '../passwords/length.js';
import { clearLocks, setStatus } from '../store/accounts.js';
import { record } from '../store/audit.js';
import { isPhone, PHONE_RULE } from './account-line.js';
import { importCommand } from './user-import.js';
import { addAccounts } from './new-accounts.js';
import { Failure, report } from './outcome.js';
import { withToolbox, type Toolbox } from './toolbox.js';

interface CreateOptions {
  email: string;
  verified?: true;
  phone?: string;
  phoneVerified?: true;
}

export function userCommand(): Command {
  const user = new Command('user').description('create, import and look after accounts');
  user
    .command('create')
    .description('create one account; its password is read from standard input')
    .requiredOption('--email <address>', 'e-mail address, the login name', readEmail)
    .requiredOption('--password-stdin', 'read the password from standard input, without the line break at its end')
    .option('--verified', 'mark the address as verified')
    .option('--phone <number>', '5 to 20 digits, with or without + in front', readPhone)
    .option('--phone-verified', 'mark the number as verified')
    .addHelpText('after', '\nExample: printf %s "$PASSWORD" | npm run cli -- user create --email ann@example.com --password-stdin')
    .action((options: CreateOptions, command: Command) => {
      if (options.phoneVerified && options.phone === undefined) command.error("error: option '--phone-verified' needs '--phone'");
      return withToolbox((tools) => create(tools, options, command));
    });
  user.addCommand(importCommand());
  emailCommand(user, 'disable', 'refuse logins, refreshes and access tokens of an account; its sessions are kept', (tools, email) => changeStatus(tools, email, 'disabled'));
  emailCommand(user, 'enable', 'let a disabled account in again, with the sessions it had', (tools, email) => changeStatus(tools, email, 'active'));
  emailCommand(user, 'unlock', 'end the lockout of an account and forget its failures', unlock);
  return user;
}

function readEmail(text: string): string {
  const email = normaliseEmail(text);
  if (!isEmail(email)) throw new InvalidArgumentError('It is no e-mail address.');
  return email;
}

function readPhone(text: string): string {
  if (!isPhone(text)) throw new InvalidArgumentError(`${PHONE_RULE}.`);
  return text;
}

async function create(tools: Toolbox, { email, phone, verified, phoneVerified }: CreateOptions, command: Command): Promise<void> {
  const passwordHash = await tools.hashing().hash(await readPassword(), { network: 'cli' });
  const [id] = await addAccounts(tools, 'operator', [{ email, passwordHash, emailVerified: verified === true, phone: phone ?? null, phoneVerified: phoneVerified === true, status: 'active', roles: [], tenants: [], profiles: [] }]);
  if (id === null || id === undefined) throw new Failure(`an account with the address ${email} exists already`);
  report(command, `created ${email} (${id})`, { id, email });
}

/** @throws Failure when it is no password */
async function readPassword(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Type the password, then Enter and Ctrl-D: ');
  const bytes = await buffer(process.stdin);
  if (!isUtf8(bytes)) throw new Failure('the password is not valid UTF-8');
  const password = bytes.toString().replace(/\r?\n$/, '');
  if (!isPassword(password)) throw new Failure(PASSWORD_RULE);
  return password;
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
  // Both stores or none: with Redis away nothing is changed.
  const opened = await gate();
  const id = await mysql().transaction(async (tx) => {
    const found = await clearLocks(tx, email);
    if (found !== null) await record(tx, { userId: found, subject: subjectOf(keyring, found), action: 'account.unlocked', status: 'success', ip: null });
    return found;
  });
  if (id !== null) await forgetFailures({ gate: opened, keyring, mysql: mysql() }, { id, email });
  return id;
}
