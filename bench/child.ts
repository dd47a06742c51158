import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A program of the bench in a process of its own, which does one job at a time. */
export interface Child<Job, Result> {
  readonly pid: number;
  isAlive(): boolean;
  /** Rejects when the job failed, the program ended, or nothing came within `patienceMs`: then it is ended. */
  ask(job: Job, patienceMs: number): Promise<Result>;
  stop: () => Promise<void>;
}

type Answer<Result> = { id: number; result: Result } | { id: number; error: string };

const STOP_MS = 2_000;

/** Starts bench/<file>.js; `setup` is what its `answer` gets first. */
export function startChild<Job, Result>(file: string, setup: unknown): Child<Job, Result> {
  const path = fileURLToPath(new URL(`${file}.js`, import.meta.url));
  const child = fork(path, [JSON.stringify(setup)], { execArgv: ['--enable-source-maps'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let asked = 0;
  let open: { id: number; resolve: (result: Result) => void; reject: (error: Error) => void } | null = null;

  child.on('message', (answer: Answer<Result>) => {
    if (answer.id !== open?.id) return;
    if ('error' in answer) open.reject(new Error(`${file}: ${answer.error}`));
    else open.resolve(answer.result);
  });
  child.once('exit', (code, signal) => open?.reject(new Error(`${file} ended early (${signal ?? code ?? 'unknown'})`)));

  return {
    pid: child.pid!,
    isAlive: () => child.connected,
    ask(job, patienceMs) {
      const id = (asked += 1);
      return new Promise<Result>((resolve, reject) => {
        const timer = setTimeout(() => {
          reject(new Error(`${file} gave no answer within ${patienceMs} ms`));
          child.kill('SIGKILL');
        }, patienceMs);
        const settled = (): void => {
          clearTimeout(timer);
          open = null;
        };
        open = { id, resolve: (result) => (settled(), resolve(result)), reject: (error) => (settled(), reject(error)) };
        child.send({ id, job }, (error) => error && open?.reject(error));
      });
    },
    async stop() {
      if (child.connected) child.disconnect();
      const insist = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(insist);
    },
  };
}

/** The other side: does each job that comes, and ends when the bench does. */
export function answer(prepare: (setup: never) => Promise<(job: never) => Promise<unknown>>): void {
  const ready = prepare(JSON.parse(process.argv[2]!) as never);
  // Told below; without this an early failure would end the process before anyone asked.
  ready.catch(() => undefined);
  // Ctrl-C reaches the whole group; the order of the stop is the bench's to decide.
  process.on('SIGINT', () => undefined);
  process.on('disconnect', () => process.exit(0));
  process.on('message', ({ id, job }: { id: number; job: unknown }) => {
    ready
      .then((work) => work(job as never))
      .then(
        (result) => process.send!({ id, result }),
        (error: unknown) => process.send!({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      );
  });
}
