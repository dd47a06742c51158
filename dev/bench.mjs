/**
 * `npm run bench -- …`: the benchmark suite against private servers, MySQL with durable
 * settings. What stands behind `--` goes to the suite; `npm run bench -- crash …`,
 * `-- retention …` and `-- soak …` run that program of bench/ instead (`npm run soak` is the last).
 */
import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { start } from './child.mjs';
import { prepare, ROOT } from './prepare.mjs';
import { createProgress } from './progress.mjs';
import { startServices } from './services.mjs';
import { orderlyStop, Refusal } from './shutdown.mjs';

/** For a million accounts in memory, as where people run that many; less on a machine that has little. */
const BUFFER_POOL = totalmem() >= 8 * 2 ** 30 ? '2G' : '512M';

const progress = createProgress();
const stopper = orderlyStop({ onSignal: 130 });

try {
  await stopper.stop(await bench());
} catch (error) {
  if (!stopper.isStopping()) {
    console.error(error instanceof Refusal ? `\n${error.message}` : error);
    await stopper.stop(1);
  }
}

/** @returns {Promise<number>} exit code */
async function bench() {
  await prepare(progress);
  const [first = '', ...rest] = process.argv.slice(2);
  const [name, args] = /^[a-z]+$/.test(first) ? [first, rest] : ['run', process.argv.slice(2)];
  const program = join(ROOT, `dist/bench/${name}.js`);
  if (!existsSync(program)) throw new Refusal(`There is no bench/${name}.ts.`);
  // What must outlive Redis is in MySQL too, and on the one disk here Redis would wait for the commits of MySQL.
  const services = await startServices(join(ROOT, '.local/bench'), { ...progress, redisOnDisk: false, fresh: true, preferred: true, bufferPool: BUFFER_POOL });
  const env = { ...process.env, ...services.programs, MYSQL_URL: services.mysqlUrl, REDIS_URL: services.redisUrl };
  const child = start(process.execPath, ['--enable-source-maps', program, ...args], { cwd: ROOT, env, stdio: ['ignore', 'inherit', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
    void services.failed.then((reason) => stopper.isStopping() || reject(new Refusal(reason)));
  });
}
