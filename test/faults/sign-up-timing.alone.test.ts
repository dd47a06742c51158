import t, { type Test } from 'tap';
import { openInbox } from '../support/inbox.js';
import { startNodes } from '../support/nodes.js';
import { brokenBuild } from '../support/racy.js';
import { auc, compare, median, type Comparison, type Times } from '../support/ranks.js';

const PASSWORD = 'a password of my own';

interface Experiment extends Comparison {
  path: 'register' | 'password/forgot';
  /** What a hash costs. */
  memoryKib: number;
  /** Another build of src/main.js. */
  main?: string;
}

/** Calls of an endpoint for known and unknown addresses, at a service of its own with as many known accounts. */
async function timesOf(t: Test, { path, memoryKib, main, ...comparison }: Experiment): Promise<Times> {
  const { nodes, needs } = await startNodes(t, 1, { ...openInbox(t).settings, ARGON2_MEMORY_KIB: String(memoryKib) }, main);
  const count = comparison.warm + comparison.rounds;
  const hash = await needs.hashing.hash('the password of everybody', { network: 'tests' });
  const values = Array.from({ length: count }, (_, i) => addressOf('known', i));
  await needs.mysql.run(`INSERT INTO users (id, email, password_hash, email_verified_at) VALUES ${values.map(() => '(UUID(), ?, ?, UTC_TIMESTAMP(3))').join(', ')}`, values.flatMap((email) => [email, hash]));
  return compare(comparison, (lane) => {
    const client = nodes[0]!.client({ ip: `198.51.100.${lane + 1}` });
    return async (kind, i) => {
      const answer = await client.request('POST', `/api/auth/${path}`, { body: { email: addressOf(kind, i), ...(path === 'register' ? { password: PASSWORD } : {}) } });
      if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`);
      return answer;
    };
  });
}

/** Both kinds are of one length. */
const addressOf = (kind: 'known' | 'unknown', i: number): string => `${kind === 'known' ? 'known' : 'other'}-${String(i).padStart(5, '0')}@example.com`;

const said = (times: Times): string => `AUC ${auc(times).toFixed(3)}, medians ${median(times.known).toFixed(2)} and ${median(times.unknown).toFixed(2)} ms`;
const isHidden = (figure: number): boolean => figure >= 0.45 && figure <= 0.55;

// 1000 of each kind leave the figure a standard error of 0.013: the band is nearly four of them on either side.
const MANY = { rounds: 1000, warm: 40, lanes: 4, memoryKib: 2048 };

for (const path of ['register', 'password/forgot'] as const) {
  t.test(`the time of ${path} does not tell whether an address is known`, async (t) => {
    const times = await timesOf(t, { ...MANY, path });
    t.ok(isHidden(auc(times)), said(times));
  });
}

// What the figure is worth: without the work that hides the answer it tells.
const FEW = { rounds: 160, warm: 20, lanes: 4, memoryKib: 12288 };

t.test('it would, if a known address were not hashed for', async (t) => {
  const hash = 'await needs.hashing.hash(password, call)';
  const main = brokenBuild(t, 'dist/src/account/register.js', hash, `(await findOwnerByEmail(needs.mysql, email)) ? '' : ${hash}`);
  const times = await timesOf(t, { ...FEW, path: 'register', main });
  t.notOk(isHidden(auc(times)), said(times));
});

t.test('it would, if a reset mail were queued before the reply', async (t) => {
  const main = brokenBuild(t, 'dist/src/account/password-reset.js', "await doUnseen(needs, 'password-forgot-address', email, () => sendToken(needs, email, call))", 'await sendToken(needs, email, call)');
  const times = await timesOf(t, { ...FEW, path: 'password/forgot', main });
  t.notOk(isHidden(auc(times)), said(times));
});
