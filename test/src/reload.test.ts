import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { SERVICE } from '../support/cli.js';
import { createClient } from '../support/client.js';
import { startNodes, type Node } from '../support/nodes.js';
import { PATIENCE_MS, until } from '../support/patience.js';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-reload-'));
t.teardown(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'env');

type Line = { level: string; msg: string };

/** Lines about the pool; logins write others. */
const linesOf = (node: Node): Line[] => node.output().trim().split('\n').map((line) => JSON.parse(line) as Line).filter(({ msg }) => /SIGHUP|pool/.test(msg));
const poolOf = async (node: Node): Promise<Record<string, unknown>> => (await createClient(node.opsBase).request('GET', '/pool')).body;

/** Sends SIGHUP and gives the line that the service writes about it. */
async function hangUp(node: Node): Promise<Line> {
  const before = linesOf(node).length;
  process.kill(node.pid, 'SIGHUP');
  for (const started = performance.now(); linesOf(node).length === before; ) {
    if (performance.now() - started > PATIENCE_MS) throw new Error('the service says nothing about SIGHUP');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return linesOf(node)[before]!;
}

t.test('SIGHUP takes HASH_THREADS from ENV_FILE as it is now; what cannot be used changes nothing, and all is in the log', async (t) => {
  const { nodes, account } = await startNodes(t, 1, { ENV_FILE: file, HASH_THREADS: '1' });
  const node = nodes[0]!;
  const { email, password } = await account();
  const logins = Promise.all(Array.from({ length: 40 }, async (_, n) => (await node.client({ ip: `192.0.2.${n}` }).login(email, password)).status));

  t.match(await hangUp(node), { level: 'error', file, reason: /ENOENT/ });
  writeFileSync(file, '# settings\nPORT=1\nHASH_THREADS="3" # more\n');
  t.match(await hangUp(node), { level: 'info', by: 'SIGHUP', from: 1, to: 3, msg: 'the hashing pool is resized' });
  t.match(await poolOf(node), { threads: 3 });
  writeFileSync(file, 'HASH_THREADS=many\n');
  t.match(await hangUp(node), { level: 'error', reason: 'HASH_THREADS must be a number from 1 to 256' });
  writeFileSync(file, 'HASH_THREADS=257\n');
  t.match(await hangUp(node), { level: 'error', reason: 'HASH_THREADS must be a number from 1 to 256' });
  writeFileSync(file, 'PORT=1\n');
  t.match(await hangUp(node), { level: 'warn', msg: /does not set HASH_THREADS/ });
  t.match(await poolOf(node), { threads: 3 });

  const before = linesOf(node).length;
  const answer = await createClient(node.opsBase).request('PUT', '/pool', { body: { threads: 2 } });
  t.same(answer.body['threads'], 2);
  await until(async () => linesOf(node).length > before);
  t.match(linesOf(node).at(-1), { level: 'info', by: `PUT /pool, request ${answer.headers.get('x-request-id')}`, from: 3, to: 2 });
  t.same(new Set(await logins), new Set([200]), 'and no login was lost');
});

t.test('without ENV_FILE SIGHUP changes nothing and does not end the service', async (t) => {
  const { nodes } = await startNodes(t, 1);
  t.match(await hangUp(nodes[0]!), { level: 'warn', msg: /ENV_FILE names no file/ });
  t.match(await poolOf(nodes[0]!), { threads: 1 });
});

t.test('a service that was started at a terminal ends with it', async (t) => {
  const { env } = await startNodes(t, 0);
  const terminal = spawn('script', ['-qec', `'${process.execPath}' '${SERVICE}'`, '/dev/null'], { env: { PATH: process.env['PATH'], TERM: 'xterm', ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => terminal.kill('SIGKILL'));
  const pid = await new Promise<number>((resolve) => {
    let out = '';
    terminal.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      const found = /"pid":(\d+).*"msg":"listening"/.exec(out);
      if (found) resolve(Number(found[1]));
    });
  });
  // Nobody may have fetched the exit code of a process that has ended.
  const isThere = (): boolean => {
    try {
      return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return false;
    }
  };
  t.ok(isThere());
  terminal.kill('SIGKILL');
  for (const started = performance.now(); isThere() && performance.now() - started < 10_000; ) await new Promise((resolve) => setTimeout(resolve, 50));
  t.notOk(isThere());
});
