/**
 * `npm run up`: from a fresh clone to a service that answers, and everything gone
 * again at Ctrl-C. Data, keys and logs stay in .local/up for the next run.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as http } from 'node:http';
import { request as https } from 'node:https';
import { join, relative } from 'node:path';
import { follow, forPeople } from './applog.mjs';
import { run } from './child.mjs';
import { reap, startDaemon } from './daemon.mjs';
import { createDemo } from './demo.mjs';
import { isAlive, readIdentity } from './pid.mjs';
import { whyNotListen } from './ports.mjs';
import { prepare, ROOT } from './prepare.mjs';
import { createProgress } from './progress.mjs';
import { startServices } from './services.mjs';
import { orderlyStop, Refusal } from './shutdown.mjs';

const HOME = join(ROOT, '.local/up');
const LOG = join(HOME, 'portcullis.log');
const progress = createProgress();
const { say, step, paint } = progress;
const stopper = orderlyStop({ onSignal: 0, lastWords: (code) => code === 0 && say('stopped') });

const { HOST = '127.0.0.1', PORT = '8080', OPS_HOST = '127.0.0.1', OPS_PORT = '9090' } = process.env;
const isTls = Boolean(process.env.TLS_CERT_FILE);
/** Where this machine reaches a listener: one on all addresses is also on the loopback. */
const reach = (/** @type {string} */ host, /** @type {string} */ port) =>
  `${host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host}:${port}`;
const BASE = `${isTls ? 'https' : 'http'}://${reach(HOST, PORT)}`;

try {
  await up();
} catch (error) {
  if (!stopper.isStopping()) {
    console.error(error instanceof Refusal ? `\n${error.message}` : error);
    await stopper.stop(1);
  }
}

async function up() {
  const other = readIdentity(join(HOME, 'in-use.json'));
  if (isAlive(other)) throw new Refusal(`npm run up already runs in this folder (pid ${other?.pid}).`);
  // A run that was killed may have left its service on the very port we want.
  await reap(HOME, say);
  await checkPorts();
  await prepare(progress);
  mkdirSync(HOME, { recursive: true, mode: 0o700 });
  const services = await startServices(HOME, progress);
  const env = {
    ...process.env,
    HOST, PORT, OPS_HOST, OPS_PORT,
    MYSQL_URL: services.mysqlUrl,
    REDIS_URL: services.redisUrl,
    SECRET_KEY: process.env.SECRET_KEY ?? keepSecretKey(),
    NOTIFY_FILE: process.env.NOTIFY_FILE ?? join(ROOT, '.local/outbox.jsonl'),
    ENV_FILE: process.env.ENV_FILE ?? join(HOME, 'env'),
  };
  const cli = join(ROOT, 'dist/src/cli/main.js');
  keepSettings(env);

  await step('schema', 'migrating', async (tell) => {
    const { code, output } = await run(process.execPath, [cli, 'migrate'], { cwd: ROOT, env });
    if (code !== 0) throw new Refusal(`The migration failed:\n${output.trim()}`);
    tell('is current');
  });
  const demo = await step('accounts', 'creating demo@example.com', async (tell) => {
    const account = await createDemo({ file: join(HOME, 'demo.json'), cli, env, cwd: ROOT });
    tell(`${account.email} ${account.isNew ? 'created' : 'is there'}`);
    return account;
  });
  const app = await step('service', 'starting', async (tell) => {
    const daemon = await startDaemon({ home: HOME, name: 'portcullis', command: process.execPath, args: [join(ROOT, 'dist/src/main.js')], cwd: ROOT, env, isReady });
    tell(`ready on ${BASE}`);
    return daemon;
  });

  greet(demo, env.NOTIFY_FILE);
  const readRest = follow(LOG, (line) => {
    const text = forPeople(line, paint);
    if (text !== null) say(text);
  });
  const end = await Promise.race([app.ended, services.failed]);
  readRest();
  if (stopper.isStopping()) return;
  say(`\n${end}`);
  await stopper.stop(1);
}

/** Told before the long part, not after it. */
async function checkPorts() {
  for (const [name, host, port] of /** @type {const} */ ([['PORT', HOST, PORT], ['OPS_PORT', OPS_HOST, OPS_PORT]])) {
    if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) throw new Refusal(`${name}=${port} is not a port.`);
    const reason = await whyNotListen(Number(port), host);
    if (!reason) continue;
    throw new Refusal(reason.code === 'EADDRINUSE'
      ? `${host}:${port} is in use by another program. Another port: ${name}=${Number(port) + 1} npm run up`
      : `${host}:${port} cannot be listened on: ${reason.message}`);
  }
}

/**
 * For operator commands in another terminal: `set -a; . .local/up/env; set +a`.
 * @param {Record<string, string | undefined>} env
 */
function keepSettings(env) {
  // Every setting that the service knows and this run was given.
  const known = [...readFileSync(join(ROOT, '.env.example'), 'utf8').matchAll(/^#?([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1]);
  const names = known.filter((name) => env[name] !== undefined);
  writeFileSync(join(HOME, 'env'), names.map((name) => `${name}='${String(env[name]).replaceAll("'", "'\\''")}'\n`).join(''), { mode: 0o600 });
}

/** Losing it makes stored codes and sessions useless, so it is made once. */
function keepSecretKey() {
  const file = join(HOME, 'secret-key');
  if (!existsSync(file)) writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  return readFileSync(file, 'utf8').trim();
}

/** @returns {Promise<boolean>} whether the service answers and says it is ready */
function isReady() {
  return new Promise((resolve) => {
    const call = (isTls ? https : http)(`${BASE}/health/ready`, { rejectUnauthorized: false, timeout: 1000 }, (reply) => {
      reply.resume();
      resolve(reply.statusCode === 200);
    });
    call.once('timeout', () => call.destroy());
    call.once('error', () => resolve(false));
    call.end();
  });
}

/**
 * @param {import('./demo.mjs').Account} demo
 * @param {string} outbox
 */
function greet(demo, outbox) {
  const body = JSON.stringify({ email: demo.email, password: demo.password ?? 'the password you gave it' });
  const here = (/** @type {string} */ path) => relative(process.cwd(), path) || path;
  say(`
${paint(1, 'Log in')} as ${demo.email}${demo.password === null ? ', which was in this database before' : ` with password ${demo.password}`}:

  curl -s${isTls ? 'k' : ''} ${BASE}/api/auth/login -H 'Content-Type: application/json' -H 'X-Token-Delivery: json' \\
    -d '${body}'

  API       http://${reach(OPS_HOST, OPS_PORT)}/docs
  metrics   http://${reach(OPS_HOST, OPS_PORT)}/metrics
  mails     ${here(outbox)} (codes too: nothing is really sent)
  log       ${here(LOG)} (its lines also appear below, shortened)

Ctrl-C stops everything; the data stays in ${here(HOME)}.
`);
}
