import { Command } from 'commander';
import { WrongSecret } from '../auth/key-pair.js';
import { revoke, rotate, type Rotation } from '../auth/key-rotation.js';
import { listKeys, type StoredKey } from '../store/signing-keys.js';
import { Failure, report } from './outcome.js';
import { withProgress } from './progress.js';
import { CHANGES, reseal, type Outcome } from './reseal.js';
import { withToolbox, type Toolbox } from './toolbox.js';

const ROTATE = `
Without --revoke the next key takes over as soon as it has been shown to verifiers for an hour: mostly that is at once.
Tokens of the former key stay good until they end.

With --revoke a key is retired at once and its tokens are refused within seconds: for a key that has leaked. Clients
that refresh get new tokens; nobody has to sign in again. Back ends that verify tokens themselves go on with the key set
that they hold, for at most five minutes. Give the kid (keys list) when the leaked key may have been replaced already,
and "all" when the database and SECRET_KEY have leaked: change SECRET_KEY first.`;

const RESEAL = `
For the change of SECRET_KEY: run it with SECRET_KEY_PREVIOUS set, once every node has the new SECRET_KEY. It may run
beside the service and as often as you like. It says what still needs the former secret.`;

export function keysCommand(): Command {
  const keys = new Command('keys').description('signing keys of access tokens, and values sealed with SECRET_KEY');
  keys
    .command('list')
    .description('the signing keys and where each stands in its life: next, active, retiring, retired')
    .action((_options: unknown, command: Command) => withToolbox((tools) => list(tools, command)));
  keys
    .command('rotate')
    .description('let the next signing key take over')
    .option('--revoke [kid]', 'retire a key at once: the one that signs, the one named, or all')
    .addHelpText('after', ROTATE)
    .action(({ revoke: target }: { revoke?: string | true }, command: Command) =>
      withToolbox(async (tools) => {
        try {
          await (target === undefined ? rotateNow(tools, command) : revokeNow(tools, command, target === true ? undefined : target));
        } catch (error) {
          throw error instanceof WrongSecret ? new Failure(error.message, { cause: error }) : error;
        }
      }),
    );
  keys
    .command('reseal')
    .description('make stored values independent of SECRET_KEY_PREVIOUS')
    .addHelpText('after', RESEAL)
    .action((_options: unknown, command: Command) =>
      withToolbox(async ({ config, keyring, mysql }) => {
        const outcome = await withProgress('reseal {bar} {percentage}% {value} of {total} values', (bar) => reseal({ config, keyring, mysql: mysql() }, (done, total) => bar.update(done, total)));
        report(command, resealSentence(outcome), { ...outcome });
        if (outcome.lost > 0) throw new Failure(`${outcome.lost} values were sealed under a secret that is neither SECRET_KEY nor SECRET_KEY_PREVIOUS`);
      }),
    );
  return keys;
}

const shown = (at: Date | null): string => at?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';

async function list({ mysql }: Toolbox, command: Command): Promise<void> {
  const keys = await listKeys(mysql());
  const line = (...cells: [string, string, string, string, string, string, string]): string => cells.map((cell, i) => cell.padEnd([43, 8, 6, 16, 16, 16][i] ?? 0)).join('  ').trimEnd();
  const lines = [
    line('kid', 'state', 'alg', 'shown since', 'signs since', 'signed until', 'retired'),
    ...keys.map((key) => line(key.kid, key.state, key.alg, shown(key.createdAt), shown(key.activatedAt), shown(key.retiringAt), shown(key.retiredAt))),
  ];
  report(command, keys.length === 0 ? 'there are no keys yet: the first start of the service makes them' : lines.join('\n'), { keys: keys.map(listed) });
}

const listed = ({ kid, state, alg, wanted, tokenLifeS, createdAt, activatedAt, retiringAt, retiredAt }: StoredKey): object => ({ kid, state, alg, wanted, tokenLifeS, createdAt, activatedAt, retiringAt, retiredAt });

async function rotateNow({ mysql, keyring, config }: Toolbox, command: Command): Promise<void> {
  const rotation = await rotate({ mysql: mysql(), keyring, config });
  report(command, rotationSentence(rotation), { rotated: rotation.kind === 'rotated', ...rotation });
}

function rotationSentence(rotation: Rotation): string {
  if (rotation.kind === 'rotated') return `key ${rotation.to} signs now; tokens of ${rotation.from} stay good until they end`;
  if (rotation.kind === 'lost') return 'another rotation came first: see keys list';
  return `key ${rotation.to} takes over by itself in ${Math.ceil(rotation.inMs / 60_000)} min: verifiers must have seen it before`;
}

async function revokeNow({ mysql, keyring, config }: Toolbox, command: Command, target: string | undefined): Promise<void> {
  const result = await revoke({ mysql: mysql(), keyring, config }, target);
  if (result.revoked.length === 0) throw new Failure(target === 'all' || target === undefined ? 'another rotation came first: see keys list' : `there is no key ${target} whose tokens are good`);
  const warning = result.early ? '. Verifiers may meet it before they have read the key set anew' : '';
  report(command, `revoked ${result.revoked.join(', ')}; key ${result.signing} signs now${warning}`, { ...result });
}

function resealSentence({ checked, resealed, lost, sessionsUntil, recoveryCodeAccounts, droppable }: Outcome): string {
  const head = `checked ${checked} sealed values: ${resealed} sealed anew, ${lost} cannot be opened`;
  if (sessionsUntil === null) return `${head}. SECRET_KEY_PREVIOUS is not set`;
  const codes = recoveryCodeAccounts === 0 ? '' : `. Recovery codes of ${recoveryCodeAccounts} accounts stop working then, unless their owners make new ones before`;
  const when = droppable ? 'SECRET_KEY_PREVIOUS can be dropped now' : lost > 0 ? 'SECRET_KEY_PREVIOUS cannot be dropped' : `SECRET_KEY_PREVIOUS can be dropped after ${sessionsUntil}, when every session of before has been refreshed or has ended`;
  return [`${head}. ${when}${codes}.`, 'What cannot be sealed anew:', ...Object.values(CHANGES).flatMap((change) => (change === null ? [] : [`- ${change}`]))].join('\n');
}
