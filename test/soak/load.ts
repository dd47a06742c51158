import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { pause, WRONG } from '../support/attempts.js';
import type { Account } from '../support/accounts.js';
import type { Answer, Issued } from '../support/client.js';
import { createAsking, type Asking } from './asking.js';
import type { Chance } from './chance.js';
import type { World } from './world.js';

const API = '/api/auth/account';
const AT_ONCE = { refreshes: 8, deletions: 5, restores: 4 };
const DUE_AT_ONCE = 15;
/** A run of the nightly task that takes longer hangs. */
const NIGHT_MS = 30_000;
const RUNNER = fileURLToPath(new URL('../support/runner.js', import.meta.url));
const POISON = `$argon2id$v=19$m=8388608,t=1000,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** An account that is deleted and restored, and how often a reply said so. */
export interface Life extends Account {
  deleted: number;
  restored: number;
}

export interface Load extends Pick<Asking, 'counts'> {
  lives: Life[];
  /** Accounts that were due for the purge. */
  due: string[];
  /** Races for one refresh token, and runs of the nightly task. */
  races: number;
  runs: number;
  stop: () => Promise<void>;
}

/** Users of every kind, at once, until they are told to stop. */
export function startLoad(world: World, chance: Chance, restMs: number): Load {
  const { needs, account, mailbox, complaints } = world;
  const { counts, ask } = createAsking(world, chance);
  const load: Load = { counts, lives: [], due: [], races: 0, runs: 0, stop };
  let over = false;

  const rest = (): Promise<unknown> => pause(restMs * (0.5 + chance.next()));
  const login = ({ email, password }: Account) => ask('login', (client) => client.login(email, password));
  const bearer = (answer: Answer) => ({ authorization: `Bearer ${answer.body['accessToken'] as string}` });
  const many = (n: number, send: () => Promise<Answer | null>): Promise<(Answer | null)[]> => Promise.all(Array.from({ length: n }, send));
  const successes = (answers: (Answer | null)[]): Answer[] => answers.filter((answer) => answer?.status === 200) as Answer[];

  /** Logs in, looks at its profile, refreshes and logs out: none of these may ever be told 401. */
  async function member(owner: Account): Promise<void> {
    const answer = await login(owner);
    if (answer?.status !== 200) return;
    let session = answer;
    for (let i = 0; i < 4 && !over; i += 1) {
      await rest();
      await ask('profile', (client) => client.profile((session.body as unknown as Issued).accessToken));
      const next = await ask('refresh', (client) => client.refresh(session.body['refreshToken']));
      // Whether it was done nobody knows: another attempt could end the session, and rightly.
      if (next?.status !== 200) return;
      session = next;
    }
    await ask('logout', (client) => client.request('POST', '/api/auth/logout', { headers: bearer(session) }));
  }

  /** Sends one refresh token many times at once: at most one successor may come of it. */
  async function racer(owner: Account): Promise<void> {
    const answer = await login(owner);
    if (answer?.status !== 200) return;
    let token = answer.body['refreshToken'];
    for (let i = 0; i < 3 && !over; i += 1) {
      const won = successes(await many(AT_ONCE.refreshes, () => ask('race', (client) => client.refresh(token))));
      load.races += 1;
      const successors = new Set(won.map(({ body }) => body['refreshToken']));
      if (successors.size > 1) complaints.push(`T14: ${successors.size} successors of one refresh token`);
      if (successors.size === 0) return;
      [token] = successors;
      await rest();
    }
  }

  /** Deletes its account with one code many times at once, and restores it the same way. */
  async function mortal(life: Life): Promise<void> {
    const answer = await login(life);
    if (answer?.status !== 200) return;
    const headers = bearer(answer);
    await ask('deletion code', (client) => client.request('POST', `${API}/delete-request`, { headers }));
    const otp = await mailbox.newest(life.email, 'account_deletion_requested', 2000);
    if (otp === null) return;
    const deletions = successes(await many(AT_ONCE.deletions, () => ask('deletion', (client) => client.request('DELETE', API, { headers, body: { otp } }))));
    if (deletions.length > 1) complaints.push(`T29: ${deletions.length} deletions by one code`);
    life.deleted += deletions.length;
    if (deletions.length === 0) return;
    await rest();
    await ask('restore code', (client) => client.request('POST', `${API}/restore-request`, { body: { email: life.email } }));
    const code = await mailbox.newest(life.email, 'account_restore_requested', 2000);
    if (code === null) return;
    const restores = successes(await many(AT_ONCE.restores, () => ask('restore', (client) => client.request('POST', `${API}/restore`, { body: { email: life.email, otp: code } }))));
    if (restores.length > 1) complaints.push(`T29: ${restores.length} restores by one code`);
    life.restored += restores.length;
  }

  /** Signs up, proves the address and logs in. */
  async function newcomer(): Promise<void> {
    const owner = { id: '', email: `${randomUUID()}@example.com`, password: `a new password ${randomUUID()}` };
    const answer = await ask('sign-up', (client) => client.request('POST', '/api/auth/register', { body: { email: owner.email, password: owner.password } }));
    if (answer?.status !== 202) return;
    const token = await mailbox.newest(owner.email, 'email_verification_requested', 3000);
    if (token === null) return;
    const proof = await ask('proof of address', (client) => client.request('POST', '/api/auth/email/verify', { body: { token } }));
    if (proof?.status === 204) await login(owner);
  }

  /** Makes accounts due and has two runs of the nightly task purge them; now and then one is killed. */
  async function night(): Promise<void> {
    const ids = Array.from({ length: DUE_AT_ONCE }, () => randomUUID());
    await needs.mysql.transaction(async (tx) => {
      for (const id of ids) {
        await tx.run('INSERT INTO users (id, email, deleted_at) VALUES (?, ?, UTC_TIMESTAMP(3) - INTERVAL 31 DAY)', [id, `${id}@example.com`]);
        await tx.run("INSERT INTO profiles (id, user_id, provider) VALUES (?, ?, 'google')", [randomUUID(), id]);
      }
    });
    load.due.push(...ids);
    await Promise.all([chance.next() < 0.5, false].map((isKilled) => retention(isKilled)));
    await pause(restMs * 30);
  }

  async function retention(isKilled: boolean): Promise<void> {
    const child = fork(RUNNER, { env: { PATH: process.env['PATH'], ...world.env }, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const limit = setTimeout(() => child.kill('SIGKILL'), NIGHT_MS);
    child.on('message', (done: number) => isKilled && done > 2 && child.kill('SIGKILL'));
    await ended;
    clearTimeout(limit);
    load.runs += 1;
  }

  const repeat = async (work: () => Promise<unknown>): Promise<void> => {
    while (!over) {
      // What touches the stores directly fails with them.
      await work().catch(() => pause(100));
      await rest();
    }
  };
  const owners: Account[] = [];
  const owner = async (place: number): Promise<Account> => (owners[place] ??= await account());
  let poisoned: Account | undefined;
  const guess = async (): Promise<void> => {
    const [victim, poison] = [await owner(99), (poisoned ??= await account({ passwordHash: POISON }))];
    await ask('guess', (client) => client.login(chance.next() < 0.9 ? victim.email : poison.email, WRONG));
  };
  const mortals = async (): Promise<void> => {
    const life = { ...(await account()), deleted: 0, restored: 0 };
    load.lives.push(life);
    await mortal(life);
  };
  const users = [
    ...[0, 1, 2, 3, 4, 5].map((i) => repeat(async () => member(await owner(i)))),
    ...[6, 7].map((i) => repeat(async () => racer(await owner(i)))),
    ...[0, 1].map(() => repeat(mortals)),
    ...[newcomer, night, guess].map((work) => repeat(work)),
  ];

  async function stop(): Promise<void> {
    over = true;
    await Promise.all(users);
    // A run that was killed, or gave up without MySQL, leaves the rest to the next night.
    await retention(false);
  }
  return load;
}
