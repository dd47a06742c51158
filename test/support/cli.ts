import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepSecret, keepSent, search } from './secrets.js';
import type { Teardown } from './stores.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
/** What `npm start` runs. */
export const SERVICE = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** What a program left behind; `code` is null after a signal. */
export interface Ended {
  code: number | null;
  out: string;
  err: string;
}

/** Runs a compiled program with nothing but these settings in its environment. */
export function runProgram(file: string, args: string[], env: Record<string, string>, input: string | Buffer = ''): Promise<Ended> {
  const child = spawn(process.execPath, [file, ...args], { env: { PATH: process.env['PATH'], ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const ended: Ended = { code: null, out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (ended.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (ended.err += chunk.toString()));
  // A program that ends before it has read its input is no failure of the test.
  child.stdin.on('error', () => undefined).end(input);
  keepTyped(String(input), args);
  return finished(child, ended);
}

/** What is typed is a password, or lines of accounts. */
function keepTyped(text: string, args: string[]): void {
  if (args.includes('--password-stdin')) keepSecret(text.trimEnd(), 'password typed');
  if (text.length < 65_536) keepSent(text);
}

/** Waits for a program, and searches what it printed for secrets. */
const finished = (child: ChildProcess, ended: Ended): Promise<Ended> =>
  new Promise((resolve) =>
    child.once('close', (code) => {
      search('output', ended.out + ended.err);
      resolve({ ...ended, code });
    }),
  );

/** Runs an operator command: `cli(env)('user', 'enable', …)`. */
export const cli =
  (env: Record<string, string>, input: string | Buffer = '') =>
  (...args: string[]): Promise<Ended> =>
    runProgram(MAIN, args, env, input);

/** Longer than any command on a terminal takes here; one that hangs is ended, with code null. */
const TERMINAL_MS = 60_000;

/** Runs an operator command on a terminal of its own (script, of util-linux); all it prints is in `out`. */
export function cliOnTerminal(env: Record<string, string>, args: string[], typed = ''): Promise<Ended> {
  const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('script', ['-qec', command, '/dev/null'], { env: { PATH: process.env['PATH'], TERM: 'xterm', ...env }, stdio: ['pipe', 'pipe', 'inherit'], timeout: TERMINAL_MS });
  const ended: Ended = { code: null, out: '', err: '' };
  let isTyped = typed === '';
  child.stdout.on('data', (chunk: Buffer) => {
    ended.out += chunk.toString();
    if (isTyped) return;
    isTyped = true;
    child.stdin.write(typed);
  });
  return finished(child, ended);
}

/** A file with these contents, for as long as the test runs. */
export function fileOf(t: Teardown, contents: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-cli-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'accounts.jsonl');
  writeFileSync(file, contents);
  return file;
}
