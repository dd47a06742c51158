import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { cli } from '../../support/cli.js';
import { PATIENCE_MS } from '../../support/patience.js';

// Starts programs that start programs.
t.setTimeout(120_000);

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));

/** Processes that this one started, and those that they started. */
function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const direct = all.filter((name) => {
    try {
      return readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)!.split(' ')[1] === String(pid);
    } catch {
      return false;
    }
  });
  return direct.flatMap((child) => [Number(child), ...childrenOf(Number(child))]);
}

t.test('help says what is measured, and wrong usage is exit code 2', async (t) => {
  const run = cli({});
  t.match(await run('tune', '--help'), { code: 0, out: /--target-ms <ms>[^]*--logins-per-s <n>[^]*--quick[^]*--stores <which>[^]*--json[^]*Exit codes: 0 recommended, 1 not measured/ });
  for (const args of [['--target-ms', '0'], ['--target-ms', 'soon'], ['--logins-per-s', '-1'], ['--stores', 'some'], ['--slow'], ['extra']]) t.match(await run('tune', ...args), { code: 2, out: '' }, args.join(' '));
});

t.test('settings that cannot be used end it with 1 and say why', async (t) => {
  t.match(await cli({ ARGON2_ENGINE: 'fast' })('tune', '--stores', 'none'), { code: 1, out: '', err: /ARGON2_ENGINE must be one of/ });
  t.match(await cli({})('tune', '--stores', 'given'), { code: 1, out: '', err: /MYSQL_URL is required[^]*REDIS_URL is required/ });
});

t.test('Ctrl-C ends it and all that it started', async (t) => {
  const tune = spawn(process.execPath, [MAIN, 'tune', '--stores', 'none'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => tune.once('exit', resolve));
  t.teardown(() => tune.kill('SIGKILL'));
  const started = performance.now();
  while (childrenOf(tune.pid!).length < 2 && performance.now() - started < PATIENCE_MS) await new Promise((resolve) => setTimeout(resolve, 50));
  const children = childrenOf(tune.pid!);
  t.equal(children.length, 2, 'the service and the load program');
  tune.kill('SIGINT');
  t.equal(await ended, 130);
  const isThere = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  t.same(children.filter(isThere), []);
});

t.test('on a terminal it shows how far it is, and Ctrl-C ends it there too', async (t) => {
  const terminal = spawn('script', ['-qec', `'${process.execPath}' '${MAIN}' tune --quick --stores none`, '/dev/null'], { env: { ...process.env, TERM: 'xterm' }, stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => terminal.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => terminal.once('exit', resolve));
  let out = '';
  let isTyped = false;
  terminal.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
    if (isTyped || !/ [1-9]\d*\/s/.test(out)) return;
    isTyped = true;
    terminal.stdin.write('\x03');
  });
  t.equal(await ended, 130);
  t.match(out, /tune [=-]{40} \d+% \d+ MiB x \d, \d+ threads, \d+\/s/);
});
