import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The service, started as an operator starts it. */
export interface Portcullis {
  /** http://host:port of its public listener. */
  base: string;
  pid: number;
  isAlive(): boolean;
  stop: () => Promise<void>;
}

const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url));
const START_MS = 15_000;
const STOP_MS = 12_000;

/**
 * Starts dist/src/main.js in a process of its own; its log goes to <folder>/<name>.log, as in production.
 * @throws Error with the end of the log when it does not come up
 */
export async function startPortcullis(env: Record<string, string | undefined>, folder: string, profile: boolean, name = 'portcullis'): Promise<Portcullis> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.log`);
  const log = openSync(path, 'w');
  const flags = profile ? ['--cpu-prof', `--cpu-prof-dir=${join(folder, 'profile')}`] : [];
  const child = spawn(process.execPath, [...flags, MAIN], { env, stdio: ['ignore', log, log] });
  closeSync(log);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null;
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const insist = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    if (isAlive()) await ended;
    clearTimeout(insist);
  };

  const deadline = performance.now() + START_MS;
  for (;;) {
    const text = readFileSync(path, 'utf8');
    const port = /^.*"port":(\d+).*"msg":"listening"/m.exec(text)?.[1];
    if (port !== undefined) return { base: `http://127.0.0.1:${port}`, pid: child.pid!, isAlive, stop };
    if (!isAlive() || performance.now() > deadline) {
      await stop();
      throw new Error(`the service did not start:\n${text.slice(-2_000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
