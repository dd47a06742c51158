import t, { type Test } from 'tap';
import { figure, scaled } from '../support/figures.js';
import { openInbox } from '../support/inbox.js';
import { type Node, type Nodes, startNodes } from '../support/nodes.js';
import { brokenBuild } from '../support/racy.js';
import { auc, compare, median, type Comparison, type Times } from '../support/ranks.js';

t.setTimeout(240_000);

const PASSWORD = 'a password of my own';

/** What each endpoint is sent beside the address, and what it answers. */
const ENDPOINTS = {
  'login': { body: { password: 'a wrong guess' }, status: 401 },
  'register': { body: { password: PASSWORD }, status: 202 },
  'password/forgot': { body: {}, status: 204 },
} as const;

type Path = keyof typeof ENDPOINTS;

interface Experiment extends Comparison {
  /** Which part of the logins that the service can do are under way beside it. */
  load?: number;
}

/** A service with hashes of this cost; `main` is another build of src/main.js. */
const serve = (t: Test, memoryKib: number, main?: string): Promise<Nodes> => startNodes(t, 1, { ...openInbox(t).settings, ARGON2_MEMORY_KIB: String(memoryKib), LOGIN_DELAYS_S: '0' }, main);

/** Calls of an endpoint for known and unknown addresses, as many of each. */
async function timesOf({ nodes, needs }: Nodes, path: Path, { load = 0, ...comparison }: Experiment): Promise<Times> {
  const { body, status } = ENDPOINTS[path];
  const count = comparison.warm + comparison.rounds;
  const hash = await needs.hashing.hash('the password of everybody', { network: 'tests' });
  const values = Array.from({ length: count }, (_, i) => addressOf('known', path, i));
  await needs.mysql.run(`INSERT INTO users (id, email, password_hash, email_verified_at) VALUES ${values.map(() => '(UUID(), ?, ?, UTC_TIMESTAMP(3))').join(', ')}`, values.flatMap((email) => [email, hash]));
  const others = Array.from({ length: load > 0 ? 100 : 0 }, (_, i) => `loaded-${i}@example.com`);
  if (others.length > 0) await needs.mysql.run(`INSERT INTO users (id, email, password_hash, email_verified_at) VALUES ${others.map(() => '(UUID(), ?, ?, UTC_TIMESTAMP(3))').join(', ')}`, others.flatMap((email) => [email, hash]));
  const stop = load > 0 ? await startLogins(nodes[0]!, others, load) : () => Promise.resolve();
  const times = await compare(comparison, (lane) => {
    const client = nodes[0]!.client({ ip: `198.51.100.${lane + 1}` });
    return async (kind, i) => {
      const answer = await client.request('POST', `/api/auth/${path}`, { body: { email: addressOf(kind, path, i), ...body } });
      if (answer.status !== status) throw new Error(`${answer.status} ${answer.text}`);
      return answer;
    };
  });
  await stop();
  return times;
}

/** Logs others in, as often as `load` says of what the node can do; the function returned ends that. */
async function startLogins(node: Node, emails: string[], load: number): Promise<() => Promise<void>> {
  const client = node.client({ ip: '203.0.113.50' });
  const login = (i: number): Promise<unknown> => client.login(emails[i % emails.length]!, 'the password of everybody');
  let done = 0;
  const until = performance.now() + 2000;
  await Promise.all(Array.from({ length: 8 }, async () => {
    while (performance.now() < until) await login((done += 1));
  }));
  const perSecond = (done / 2) * load;
  t.comment(`${perSecond.toFixed(0)} of ${(done / 2).toFixed(0)} logins a second`);
  const [began, first] = [performance.now(), done];
  const running = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    for (const due = first + ((performance.now() - began) / 1000) * perSecond; done < due; done += 1) {
      const one: Promise<unknown> = login(done).finally(() => running.delete(one));
      running.add(one);
    }
  }, 5);
  return async () => {
    clearInterval(timer);
    await Promise.all(running);
  };
}

/** Both kinds are of one length. */
const addressOf = (kind: 'known' | 'unknown', path: Path, i: number): string => `${kind === 'known' ? 'known' : 'other'}-${String(i).padStart(5, '0')}@${path.replace('/', '-')}.example`;

const said = (times: Times): string => `AUC ${auc(times).toFixed(3)}, medians ${median(times.known).toFixed(2)} and ${median(times.unknown).toFixed(2)} ms`;
/** How far from the half a figure may be. */
const BAND = scaled(0.09, 0.05);
const isHidden = (figure: number): boolean => Math.abs(figure - 0.5) <= BAND;

// 1000 of each kind leave the figure a standard error of 0.013, 300 one of 0.024: the band is nearly four of them on either side.
const MANY = { rounds: scaled(300, 1000), warm: 40, lanes: 4 };
const service = await serve(t, 2048);

for (const path of Object.keys(ENDPOINTS) as Path[]) {
  t.test(`the time of ${path} does not tell whether an address is known`, async (t) => {
    const times = await timesOf(service, path, MANY);
    figure(t, 'T07', { did: `${MANY.rounds} + ${MANY.rounds} calls of ${path} for known and unknown addresses in turn`, figure: said(times), ok: isHidden(auc(times)) });
  });
}

t.test('nor does it at four fifths of the load that the service can take', { skip: scaled(1, 0) === 1 && 'in the full run: it needs the machine to itself' }, async (t) => {
  const times = await timesOf(await serve(t, 2048), 'login', { ...MANY, rounds: 500, lanes: 2, load: 0.8 });
  figure(t, 'T07', { did: '500 + 500 calls of login for known and unknown addresses in turn, beside other logins at 80 % of the load', figure: said(times), ok: isHidden(auc(times)) });
});

// What the figure is worth: without the work that hides the answer it tells.
const FEW = { rounds: scaled(60, 160), warm: 12, lanes: 4 };
const PLAIN_KIB = 12_288;

t.test('that of a login would, if nothing were hashed for an unknown address', async (t) => {
  const main = brokenBuild(t, 'dist/workers/hashing.js', 'phc === null ? (await argon2.verify(decoy, job.plain), false)', 'phc === null ? false');
  // Refusals leave at ticks of 25 ms, which hide a cheap hash whoever it is for.
  const times = await timesOf(await serve(t, 131_072, main), 'login', { ...FEW, rounds: scaled(30, 160) });
  t.notOk(isHidden(auc(times)), said(times));
});

t.test('that of a sign-up would, if a known address were not hashed for', async (t) => {
  const hash = 'await needs.hashing.hash(password, call)';
  const main = brokenBuild(t, 'dist/src/account/register.js', hash, `(await findOwnerByEmail(needs.mysql, email)) ? '' : ${hash}`);
  const times = await timesOf(await serve(t, PLAIN_KIB, main), 'register', FEW);
  t.notOk(isHidden(auc(times)), said(times));
});

t.test('that of a request for a reset would, if its mail were queued before the reply', async (t) => {
  const main = brokenBuild(t, 'dist/src/account/password-reset.js', "await doUnseen(needs, 'password-forgot-address', email, () => sendToken(needs, email, call))", 'await sendToken(needs, email, call)');
  const times = await timesOf(await serve(t, PLAIN_KIB, main), 'password/forgot', FEW);
  t.notOk(isHidden(auc(times)), said(times));
});
