import t from 'tap';
import { codeOf, counted, pause, strangers, tally, WRONG } from '../../support/attempts.js';
import { startApp } from '../../support/app.js';
import { challenge, factorOwner, verify, type FactorOwner } from '../../support/factors.js';
import { figure } from '../../support/figures.js';

const service = await startApp(t, { LOGIN_DELAYS_S: '0', LOCKOUT_MINUTES: '1' });
const { client } = service;
const { mysql } = service.app.needs;
const stranger = strangers(client);

/** Where a stolen session could guess: each gives the outcome of one guess. */
const guesses: Record<string, (owner: FactorOwner) => Promise<string>> = {
  'a password to enrol': async (owner) => codeOf(await owner.enrol(WRONG)),
  'a password to remove': async (owner) => codeOf(await owner.remove('000000', WRONG)),
  'a code to remove': async (owner) => codeOf(await owner.remove('000000')),
  'a recovery code to remove': async (owner) => codeOf(await owner.remove('zzzz-zzzz-zzzz-zzzz')),
  'a password for recovery codes': async (owner) => codeOf(await owner.renew(WRONG)),
};

t.test('five wrong guesses at any of the endpoints lock the account everywhere', async (t) => {
  const after: string[] = [];
  for (const [name, guess] of Object.entries(guesses)) {
    const ann = await factorOwner(service);
    const { secret } = await ann.secure();
    const pending = await challenge(client(), ann);
    const expected = /password/.test(name) ? 'INVALID_CREDENTIALS' : 'MFA_INVALID';
    for (let i = 0; i < 5; i += 1) t.equal(await guess(ann), expected, name);
    t.equal(await guess(ann), 'ACCOUNT_LOCKED', name);
    after.push(codeOf(await ann.enrol()), codeOf(await client().login(ann.email, ann.password)), codeOf(await verify(client(), pending, 'totp', ann.code(secret))));
    t.same(after.slice(-3), ['ACCOUNT_LOCKED', 'ACCOUNT_LOCKED', 'ACCOUNT_LOCKED'], `${name}: the right password, a login, a second factor`);
    t.equal((await ann.ask('GET', '')).status, 200, `${name}: the session lives`);
  }
  const open = after.filter((code) => code !== 'ACCOUNT_LOCKED').length;
  figure(t, 'T04', { did: `locked at each of ${Object.keys(guesses).length} endpoints of factors, then right attempts there, at login and at the second factor`, figure: `${open} of ${after.length} let in`, ok: open === 0 });
});

t.test('guesses at the code that confirms count too', async (t) => {
  const ann = await factorOwner(service);
  const secret = (await ann.enrol()).body['secret'] as string;
  for (let i = 0; i < 5; i += 1) t.equal(codeOf(await ann.confirm('000000')), 'MFA_INVALID');
  t.equal(codeOf(await ann.confirm(ann.code(secret))), 'ACCOUNT_LOCKED');
  await mysql.run('UPDATE users SET locked_until = NULL WHERE id = ?', [ann.id]);
  t.equal(codeOf(await ann.confirm(ann.code(secret))), 'OK', 'the enrolment outlives the lock');
});

t.test('of a hundred guesses at once five are checked, whatever endpoint they take', async (t) => {
  const ann = await factorOwner(service);
  await ann.secure();
  const kinds = Object.values(guesses);
  const outcomes = await Promise.all(Array.from({ length: 100 }, (_, i) => kinds[i % kinds.length]!(ann)));
  const checked = outcomes.filter((outcome) => outcome === 'MFA_INVALID' || outcome === 'INVALID_CREDENTIALS');
  t.equal(checked.length, 5);
  t.equal(outcomes.filter((outcome) => outcome === 'ACCOUNT_LOCKED').length, 95);
});

t.test('the password alone buys no further guesses at the code', async (t) => {
  const ann = await factorOwner(service);
  await ann.secure();
  for (let i = 0; i < 4; i += 1) {
    t.equal(codeOf(await ann.remove('000000')), 'MFA_INVALID');
    t.equal(codeOf(await ann.renew()), 'OK', 'a right password in between');
    t.equal(codeOf(await ann.enrol()), 'MFA_ALREADY_ENROLLED');
  }
  t.equal(codeOf(await ann.remove('000000')), 'MFA_INVALID', 'the fifth');
  t.equal(codeOf(await ann.renew()), 'ACCOUNT_LOCKED');
});

t.test('a whole proof clears what was counted', async (t) => {
  const plain = await factorOwner(service);
  for (let i = 0; i < 4; i += 1) await plain.enrol(WRONG);
  t.equal(codeOf(await plain.enrol()), 'OK', 'the password is all that this account has');
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await plain.enrol(WRONG)), 'INVALID_CREDENTIALS');

  const ann = await factorOwner(service);
  const { secret } = await ann.secure();
  for (let i = 0; i < 4; i += 1) await ann.remove('000000');
  t.equal(codeOf(await ann.remove(ann.code(secret))), 'OK');
  for (let i = 0; i < 4; i += 1) t.equal(codeOf(await ann.enrol(WRONG)), 'INVALID_CREDENTIALS');
});

t.test('a reply to a wrong guess is held as that of a login', async (t) => {
  const slow = await startApp(t, { LOGIN_DELAYS_S: '1' });
  const ann = await factorOwner(slow);
  const started = performance.now();
  const failing = ann.enrol(WRONG);
  await counted(slow.app.needs, ann.email, 1);
  t.equal(codeOf(await ann.enrol()), 'LOGIN_THROTTLED');
  t.equal(codeOf(await failing), 'INVALID_CREDENTIALS');
  t.ok(performance.now() - started >= 1000);
});

t.test('strangers who lock the account keep its owner from nothing', async (t) => {
  const ann = await factorOwner(service);
  const from = stranger();
  for (let i = 0; i < 5; i += 1) await from.login(ann.email, WRONG);
  t.equal(codeOf(await from.login(ann.email, ann.password)), 'ACCOUNT_LOCKED');
  t.equal(codeOf(await ann.enrol()), 'OK');
});

t.test('a password that changes while it is checked is asked for again', async (t) => {
  const ann = await factorOwner(service);
  const hash = await service.app.needs.hashing.hash('another password', { network: 'tests' });
  // Holds the account's row, so that the check is over and the change waits for what is committed first.
  let answer: Promise<string> = Promise.resolve('');
  await mysql.transaction(async (tx) => {
    await tx.run('UPDATE users SET password_hash = ? WHERE id = ?', [hash, ann.id]);
    answer = ann.enrol().then(codeOf);
    await pause(250);
  });
  t.equal(await answer, 'INVALID_CREDENTIALS');
  t.same(await mysql.rows('SELECT 1 FROM mfa_factors WHERE user_id = ?', [ann.id]), [], 'nothing is kept');
  t.equal(codeOf(await ann.enrol('another password')), 'OK');
});

t.test('an account that ended changes nothing', async (t) => {
  const ann = await factorOwner(service);
  await mysql.run("UPDATE users SET status = 'disabled' WHERE id = ?", [ann.id]);
  t.equal(codeOf(await ann.enrol()), 'UNAUTHENTICATED');
  const bob = await factorOwner(service);
  await mysql.run('UPDATE users SET password_hash = NULL WHERE id = ?', [bob.id]);
  for (const guess of [bob.password, 'null', ' ']) t.equal(codeOf(await bob.enrol(guess)), 'INVALID_CREDENTIALS', 'no password is right where there is none');
});

t.test('changes are limited per account', async (t) => {
  const limited = await startApp(t, { LIMIT_MFA: '3/300' });
  const [ann, bob] = [await factorOwner(limited), await factorOwner(limited)];
  t.same(tally([await ann.enrol(), await ann.confirm('1'), await ann.renew(), await ann.enrol(), await ann.remove('1')]), { OK: 1, MFA_INVALID: 1, MFA_NOT_ENROLLED: 1, RATE_LIMITED: 2 });
  t.equal(codeOf(await bob.enrol()), 'OK');
  t.equal((await ann.ask('GET', '')).status, 200);
});

t.test('while Redis is down nothing is changed and the list is served', async (t) => {
  const ann = await factorOwner(service);
  const secret = (await ann.enrol()).body['secret'] as string;
  await service.redis.stop();
  for (const answer of [await ann.enrol(), await ann.confirm(ann.code(secret)), await ann.remove('000000'), await ann.renew()]) t.match(answer, { status: 503, body: { code: 'UNAVAILABLE' } });
  t.match((await ann.ask('GET', '')).body, { factors: [{ method: 'totp', verified: false }] });
});

t.test('a guess within the delay that another earned is not heard, whichever endpoint it takes', async (t) => {
  const slow = await startApp(t, { LOGIN_DELAYS_S: '1.5' });
  const kinds = Object.entries({ ...guesses, 'a code to confirm': async (owner: FactorOwner) => codeOf(await owner.confirm('000000')) });
  await Promise.all(
    kinds.map(async ([name, guess]) => {
      const ann = await factorOwner(slow);
      await (name === 'a code to confirm' ? ann.enrol() : ann.secure());
      const held = guess(ann);
      await counted(slow.app.needs, ann.email, 1);
      t.equal(await guess(ann), 'LOGIN_THROTTLED', name);
      t.match(await held, /INVALID/, name);
    }),
  );
});

t.test('while the hashing threads are full no password is heard', async (t) => {
  const small = await startApp(t, { HASH_THREADS: '1', HASH_QUEUE_MS: '1', ARGON2_MEMORY_KIB: '65536', ARGON2_PASSES: '8' });
  const ann = await factorOwner(small);
  const busy = small.app.needs.hashing.hash('whatever', { network: 'another' });
  for (const ask of [() => ann.enrol(), () => ann.remove('000000'), () => ann.renew()]) t.equal(codeOf(await ask()), 'OVERLOADED');
  await busy;
  t.equal(codeOf(await ann.enrol()), 'OK');
});
